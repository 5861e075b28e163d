/* compare_loops.h - the loops of compare_cpu.c, included once for each type that elements are widened to: REAL, with
 * MAGNITUDE(x), its absolute value; OF(name) is the name of a function there. */

/* One segment, without a branch. Lane l sums the errors of elements l, l + LANES, ...: the order is the same for every
 * compiler. A finite difference may be too large for the type; its ratio to y is not. */
static void OF(compare)(const REAL *x, const REAL *y, int64_t n, gm_difference *d)
{
    REAL sum[LANES] = {0}, most = 0, far = 0;
    int64_t differing = 0, nan = 0;
    for (int64_t i = 0; i < n; i++) {
        int both = (x[i] != x[i]) & (y[i] != y[i]);
        int equal = (x[i] == y[i]) | both;
        REAL size = MAGNITUDE(y[i]), difference = MAGNITUDE(x[i] - y[i]);
        REAL halves = MAGNITUDE(x[i] / 2 - y[i] / 2), infinite = (REAL)INFINITY;
        REAL ratio = size == 0 ? difference : difference < infinite ? difference / size : halves / (size / 2);
        difference = equal ? 0 : difference != difference ? infinite : difference;
        ratio = equal ? 0 : ratio != ratio ? infinite : ratio;
        most = ratio > most ? ratio : most;
        far = difference > far ? difference : far;
        sum[i % LANES] += ratio;
        differing += !equal;
        nan += both;
    }
    d->sum_relative += (double)(((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7])));
    d->max_relative = fmax(d->max_relative, (double)most);
    d->max_absolute = fmax(d->max_absolute, (double)far);
    for (int64_t i = 0; d->first < 0 && differing && i < n; i++)
        if (!(x[i] == y[i] || (x[i] != x[i] && y[i] != y[i])))
            d->first = d->count + i;
    d->count += n;
    d->differing += differing;
    d->nan_pairs += nan;
}

/* Elements [first, first + n) of the call. */
static void OF(block)(const gm_compare_call *call, int64_t first, int64_t n, gm_difference *d)
{
    REAL x[SEGMENT], y[SEGMENT];
    size_t x_size = gm_dtype_size(call->x_type), y_size = gm_dtype_size(call->y_type);
    for (int64_t i = 0; i < n; i += SEGMENT) {
        int64_t part = gm_min(SEGMENT, n - i);
        OF(row)(x, (const char *)call->x + (size_t)(first + i) * x_size, part, call->x_type, call->x_swap);
        OF(row)(y, (const char *)call->y + (size_t)(first + i) * y_size, part, call->y_type, call->y_swap);
        OF(compare)(x, y, part, d);
    }
}
