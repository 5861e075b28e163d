#include "tests/src/slow/uses.h"

#include "base/size.h"
#include "tests/src/slow/memory.h"

#include <string.h>

enum { WORD = 16, REAL = sizeof(double), DIGEST_WORDS = 1 << 16 };

/* Adds a use of the member `field` of a call, unless that is NULL or there are no bytes. */
static slow_use *add(slow_uses *uses, const char *name, void *field, slow_how how, size_t align, size_t pitch,
                     size_t width, int64_t rows)
{
    static slow_use none;
    char *at;
    memcpy(&at, field, sizeof at);
    if (!at || width == 0 || rows == 0)
        return &none;
    if (uses->count == SLOW_USES)
        slow_die("%s uses too many places", uses->call);
    slow_use *use = &uses->use[uses->count++];
    *use = (slow_use){name, at, field, how, align, width, {pitch, 0}, {rows, 1}};
    return use;
}

static void repeat(slow_use *use, int64_t times, size_t step)
{
    use->rows[1] = times > 1 && step > 0 ? times : 1;
    use->step[1] = step;
}

void slow_uses_add(slow_uses *uses, const char *name, void *field, int is_host, slow_how how, size_t pitch,
                   size_t width, int64_t rows)
{
    slow_use *use = add(uses, name, field, how, 1, pitch, width, rows);
    if (is_host)
        use->field = NULL;
}

#define ADD(member, how, align, pitch, width, rows) \
    add(uses, #member, &c->member, how, align, (size_t)(pitch), (size_t)(width), rows)

/* --- Products --- */

void slow_uses_unpack(gm_unpack_call *c, slow_uses *uses)
{
    size_t from = gm_dtype_size(c->src_type), to = gm_dtype_size(c->dst_type);
    int64_t rows = c->cols ? c->rows : 0;
    ADD(src, SLOW_READS, from, c->src_pitch, (size_t)c->cols * from, rows);
    ADD(dst, SLOW_WRITES, to, (size_t)c->ld * to, (size_t)c->cols * to, rows);
    ADD(underflow, SLOW_ADDS, sizeof *c->underflow, 0, sizeof *c->underflow, rows > 0);
}

void slow_uses_fold(gm_fold_call *c, slow_uses *uses)
{
    size_t size = gm_dtype_size(c->type), width = (size_t)c->cols * size;
    ADD(part, SLOW_READS, size, (size_t)c->part_ld * size, width, c->part_ld ? c->rows : gm_min(c->rows, 1));
    ADD(acc, SLOW_WRITES, size, (size_t)c->ld * size, width, c->rows);
}

void slow_uses_finish(gm_finish_call *c, slow_uses *uses)
{
    size_t acc = gm_dtype_size(c->acc_type), c0 = gm_dtype_size(c->c0_type), out = gm_dtype_size(c->out_type);
    size_t elements = (size_t)(c->rows * c->cols);
    ADD(acc, SLOW_READS, acc, (size_t)c->ldacc * acc, (size_t)c->cols * acc, c->rows);
    ADD(c0, SLOW_READS, c0, 0, elements * c0, 1);
    ADD(out, SLOW_WRITES, out, 0, elements * out, 1);
    ADD(count, SLOW_ADDS, sizeof(uint64_t), 0, sizeof *c->count, elements > 0);
}

void slow_uses_probe(gm_probe_call *c, slow_uses *uses)
{
    size_t size = gm_dtype_size(c->type);
    int64_t batch = gm_max(c->batch, 1), rows = c->cols ? c->rows : 0, cols = c->rows ? c->cols : 0;
    if (batch > GM_BATCH_MOST)
        slow_die("a probe of %lld matrices", (long long)batch);
    if (rows && (c->pitch % size || (batch > 1 && c->next_m % size)))
        slow_die("rows of a probe are %zu bytes apart", c->pitch);
    repeat(ADD(m, SLOW_READS, size, c->pitch, (size_t)cols * size, rows), batch, c->next_m);
    repeat(ADD(p, SLOW_READS, REAL, 0, cols * REAL, 1), batch, (size_t)c->next_p * REAL);
    repeat(ADD(q, SLOW_READS, REAL, 0, rows * REAL, 1), batch, (size_t)c->next_q * REAL);
    repeat(ADD(r, SLOW_WRITES, REAL, 0, rows * REAL, 1), batch, (size_t)c->next_r * REAL);
    repeat(ADD(r_abs, SLOW_WRITES, REAL, 0, rows * REAL, 1), batch, (size_t)c->next_r * REAL);
    repeat(ADD(r_sq, SLOW_WRITES, REAL, 0, rows * REAL, 1), batch, (size_t)c->next_r * REAL);
    repeat(ADD(s, SLOW_WRITES, REAL, 0, cols * REAL, 1), batch, (size_t)c->next_s * REAL);
    repeat(ADD(s_abs, SLOW_WRITES, REAL, 0, cols * REAL, 1), batch, (size_t)c->next_s * REAL);
    repeat(ADD(s_sq, SLOW_WRITES, REAL, 0, cols * REAL, 1), batch, (size_t)c->next_s * REAL);
    ADD(work, SLOW_WRITES, WORD, 0, c->work_bytes, rows > 0);
}

/* A or B: [outer][k], or [k][outer]. */
static slow_use *add_operand(slow_uses *uses, const char *name, void *field, int outer_is_row, int64_t outer, int64_t k,
                             size_t pitch, size_t size)
{
    int64_t rows = outer_is_row ? outer : k, cols = outer_is_row ? k : outer;
    return add(uses, name, field, SLOW_READS, WORD, pitch, (size_t)cols * size, cols ? rows : 0);
}

void slow_uses_product(const gm_product *p, gm_product_call *c, slow_uses *uses)
{
    size_t operand = gm_dtype_size(p->operand), sum = gm_dtype_size(p->accumulator);
    size_t acc = c->rounded ? sizeof(float) : sum, tile = (size_t)(c->tile * c->tile) * sum;
    int64_t batch = gm_max(c->batch, 1), leaves = gm_ceil_div(c->k, c->leaf);
    int is_first = !c->accumulate && leaves <= gm_max(c->part_count, 1), is_one = batch == 1;
    if (((size_t)c->lda * operand | (size_t)c->ldb * operand) % WORD || c->leaf % 64 || c->tile > p->tile ||
        (!is_one && ((size_t)c->next_a * operand | (size_t)c->next_b * operand) % WORD))
        slow_die("a product of rows %lld and %lld apart, operands %lld and %lld, leaves of %lld, tiles of %lld",
                 (long long)c->lda, (long long)c->ldb, (long long)c->next_a, (long long)c->next_b, (long long)c->leaf,
                 (long long)c->tile);
    if ((!is_one && !p->batches) || batch > GM_BATCH_MOST || c->part_count > GM_BATCH_MOST)
        slow_die("a batch of %lld products, of %lld leaves side by side", (long long)batch, (long long)c->part_count);
    if (c->rounded && (!p->rounds || !is_first))
        slow_die("%lld leaves of a product cannot be rounded", (long long)leaves);
    size_t pitch_a = (size_t)c->lda * operand, pitch_b = (size_t)c->ldb * operand;
    repeat(add_operand(uses, "a", &c->a, !c->transpose_a, c->m, c->k, pitch_a, operand), batch,
           (size_t)c->next_a * operand);
    repeat(add_operand(uses, "b", &c->b, c->transpose_b, c->n, c->k, pitch_b, operand), batch,
           (size_t)c->next_b * operand);
    repeat(ADD(acc, SLOW_WRITES, acc, (size_t)c->ldacc * acc, (size_t)c->n * acc, c->m), batch,
           (size_t)c->next_acc * acc);
    ADD(tiles, SLOW_WRITES, sum, tile, tile, p->wants_tiles ? c->tile_count : 0);
    ADD(parts, SLOW_WRITES, WORD, 0, (size_t)(c->part_count * c->m * c->ldacc) * sum, 1);
    for (int i = 0; i < 2 && p->work.planes; i++) {
        int64_t outer = (i ? c->n : c->m) * ((i ? c->next_b : c->next_a) ? batch : 1);
        add(uses, "work", &c->work[i], SLOW_WRITES, 256, 0,
            gm_split_lay(&p->work, outer, c->k, c->leaf, c->part_count).bytes, 1);
    }
    ADD(schemes, SLOW_WRITES, REAL, 0, GM_SCHEMES * REAL, 1);
    ADD(rounded, SLOW_ADDS, sizeof(uint64_t), 0, sizeof *c->rounded, 1);
}

/* --- Statistics --- */

/* Elements of leaves first .. first + leaves: the last one of a segment is shorter. */
static int64_t elements_of(const gm_reduce_rows_call *c)
{
    int64_t length = gm_leaf_length(c->type), per = gm_max(gm_ceil_div(c->segment, length), 1), sum = 0;
    for (int64_t i = c->first; i < c->first + c->leaves; i++)
        sum += i % per == per - 1 ? c->segment - (per - 1) * length : length;
    return sum;
}

void slow_uses_reduce_rows(gm_reduce_rows_call *c, slow_uses *uses)
{
    size_t size = gm_dtype_size(c->type);
    ADD(src, SLOW_READS, size, 0, (size_t)elements_of(c) * size, 1);
    ADD(out, SLOW_WRITES, sizeof(uint64_t), 0, (size_t)c->leaves * sizeof *c->out, 1);
}

void slow_uses_reduce_columns(gm_reduce_columns_call *c, slow_uses *uses)
{
    size_t size = gm_dtype_size(c->type);
    if (c->pitch % size)
        slow_die("rows of columns are %zu bytes apart", c->pitch);
    ADD(src, SLOW_READS, size, c->pitch, (size_t)c->cols * size, c->rows);
    ADD(open, SLOW_WRITES, sizeof(uint64_t), 0, (size_t)c->cols * sizeof *c->open, 1);
    ADD(total, SLOW_WRITES, sizeof(uint64_t), 0, (size_t)c->cols * sizeof *c->total, 1);
    ADD(scratch, SLOW_WRITES, sizeof(uint64_t), 0, (size_t)c->scratch_count * sizeof *c->scratch, 1);
}

void slow_uses_normalize(gm_normalize_call *c, slow_uses *uses)
{
    size_t from = gm_dtype_size(c->src_type), to = gm_dtype_size(c->out_type), real = c->wide ? REAL : sizeof(float);
    int64_t elements = c->rows * c->cols, factors = (c->rows - 1) * c->row_step + (c->cols - 1) * c->col_step + 1;
    factors = elements ? factors : 0;
    ADD(src, SLOW_READS, from, 0, (size_t)elements * from, 1);
    ADD(out, SLOW_WRITES, WORD, 0, (size_t)elements * to, 1);
    ADD(sub, SLOW_READS, real, 0, (size_t)factors * real, 1);
    ADD(factor, SLOW_READS, real, 0, (size_t)factors * real, 1);
    ADD(counts, SLOW_ADDS, sizeof(uint64_t), 0, sizeof *c->counts, elements > 0);
}

void slow_uses_histogram(gm_histogram_call *c, slow_uses *uses)
{
    size_t size = gm_dtype_size(c->type), lists = (size_t)((c->row_step ? c->rows : 1) * c->prefixes);
    int64_t elements = c->rows * c->cols;
    ADD(src, SLOW_READS, size, 0, (size_t)elements * size, 1);
    ADD(prefix, SLOW_READS, sizeof *c->prefix, 0, lists * sizeof *c->prefix, elements > 0);
    ADD(counts, SLOW_ADDS, sizeof *c->counts, 0, (lists << c->bits) * sizeof *c->counts, elements > 0);
}

/* --- Elements that move --- */

void slow_uses_flip(gm_flip_call *c, slow_uses *uses)
{
    size_t bytes = (size_t)(c->outer * c->rows * c->inner * c->bytes);
    ADD(src, SLOW_READS, (size_t)c->bytes, 0, bytes, 1);
    ADD(dst, SLOW_WRITES, (size_t)c->bytes, 0, bytes, 1);
}

void slow_uses_transpose(gm_transpose_call *c, slow_uses *uses)
{
    size_t bytes = (size_t)(c->outer * c->first * c->middle * c->second * c->inner * c->bytes);
    ADD(src, SLOW_READS, (size_t)c->bytes, 0, bytes, 1);
    ADD(dst, SLOW_WRITES, (size_t)c->bytes, 0, bytes, 1);
}

void slow_uses_index_rows(gm_index_rows_call *c, slow_uses *uses)
{
    size_t size = gm_dtype_size(c->type);
    ADD(index, SLOW_READS, size, 0, (size_t)c->count * size, 1);
    ADD(rows, SLOW_WRITES, sizeof *c->rows, 0, (size_t)c->count * sizeof *c->rows, 1);
    ADD(bad, SLOW_ADDS, sizeof *c->bad, 0, sizeof *c->bad, c->count > 0);
}

/* Places are known when the queue gets there: until then any row of the allocation may be written. */
void slow_uses_gather(gm_gather_call *c, slow_uses *uses)
{
    size_t bytes = (size_t)c->bytes, list = (size_t)c->count * sizeof *c->index;
    int64_t count = bytes ? c->count : 0;
    ADD(index, SLOW_READS, sizeof *c->index, 0, list, 1);
    ADD(place, SLOW_READS, sizeof *c->place, 0, list, 1);
    ADD(from, SLOW_READS, 1, c->from_pitch, bytes, count ? c->rows : 0);
    if (c->place)
        ADD(to, SLOW_WRITES, 1, 0, slow_memory_rest(c->to), count > 0);
    else
        ADD(to, SLOW_WRITES, 1, c->to_pitch, bytes, count);
}

/* --- Uses --- */

static size_t extent(const slow_use *u)
{
    return (size_t)(u->rows[1] - 1) * u->step[1] + (size_t)(u->rows[0] - 1) * u->step[0] + u->width;
}

void slow_uses_settle(const slow_uses *uses)
{
    for (int i = 0; i < uses->count; i++) {
        const slow_use *u = &uses->use[i];
        size_t bytes = extent(u);
        char *at = slow_memory_find(u->at, bytes);
        if (!u->field && slow_memory_has(u->at, bytes))
            slow_die("%s: %s is device memory", uses->call, u->name);
        if (!u->field)
            continue;
        if (!at)
            slow_die("%s: %s, %zu bytes, %s", uses->call, u->name, bytes,
                     slow_memory_has(u->at, 1) ? "leaves its allocation" : "is no device memory");
        if ((size_t)u->at % u->align)
            slow_die("%s: %s at %p is not aligned to %zu bytes", uses->call, u->name, (const void *)u->at, u->align);
        memcpy(u->field, &at, sizeof at);
    }
}

/* Has a row of `u`, or all of it where its rows are not looked at, a byte in [from, to)? */
static int has_bytes(const slow_use *u, const char *from, const char *to)
{
    if (u->at >= to || u->at + extent(u) <= from)
        return 0;
    if (u->rows[1] > 1 || u->rows[0] == 1 || u->step[0] <= u->width)
        return 1;
    int64_t before = from - u->at - (int64_t)u->width, step = (int64_t)u->step[0];
    int64_t row = before < 0 ? 0 : before / step + 1; /* the first that ends behind `from` */
    return row < u->rows[0] && u->at + row * step < to;
}

int slow_uses_meet(const slow_use *a, const slow_use *b)
{
    const char *end = a->at + extent(a);
    int meet = 0;
    if (!has_bytes(b, a->at, end))
        return 0;
    if (a->rows[1] > 1 || a->rows[0] == 1 || a->step[0] <= a->width)
        return 1;
    for (int64_t i = 0; i < a->rows[0] && !meet; i++) {
        const char *row = a->at + (size_t)i * a->step[0];
        meet = has_bytes(b, row, row + a->width);
    }
    return meet;
}

uint64_t slow_uses_digest(const slow_use *u)
{
    uint64_t digest = 1, word;
    int64_t words = (int64_t)(u->width / sizeof word + 1) * u->rows[0];
    size_t apart = (size_t)gm_max(words / DIGEST_WORDS, 1) * sizeof word;
    for (int64_t i = 0; i < u->rows[0]; i++)
        for (size_t k = 0; k < u->width; k += apart) {
            word = 0;
            memcpy(&word, u->at + (size_t)i * u->step[0] + k,
                   (size_t)gm_min((int64_t)(u->width - k), (int64_t)sizeof word));
            digest = (digest ^ word) * UINT64_C(0x9E3779B97F4A7C15);
            digest ^= digest >> 29;
        }
    return digest;
}
