#include "src/matmul/matmul.h"

#include "base/log.h"
#include "base/size.h"
#include "io/describe/describe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const letters[GM_OPERANDS] = {"A", "B", "C0"};

/* An operand of a batch: a stack of frames, or a matrix that is the same for all of them. */
static int stack_of(gm_matmul_case *c, int which)
{
    gm_dataset *d = &c->operand[which];
    char title[GM_PATH_MAX], a[GM_PATH_MAX], shape[GM_SHAPE_TEXT];
    if (d->view_rank != 3 && (d->view_rank != 2 || which == GM_C0))
        return gm_fail(GM_EINPUT, "%s is %s, --batch takes stacks of three dimensions%s", gm_dataset_title(d, title),
                       gm_shape_format(d->view_rank, d->view, shape),
                       which == GM_C0 ? " as C0" : ", or a matrix for all frames");
    c->stored_rows[which] = d->view[d->view_rank - 2];
    c->stored_cols[which] = d->view[d->view_rank - 1];
    c->is_stack[which] = d->view_rank == 3;
    if (!c->is_stack[which])
        return GM_OK;
    if (c->frames >= 0 && c->frames != d->view[0])
        return gm_fail(GM_EINPUT, "%s has %lld frames, %s has %lld", gm_dataset_title(d, title), (long long)d->view[0],
                       gm_dataset_title(&c->operand[c->is_stack[GM_A] && which != GM_A ? GM_A : GM_B], a),
                       (long long)c->frames);
    c->frames = d->view[0];
    return GM_OK;
}

/* The operand as a matrix: two dimensions, or any number of them with --flatten. A vector is a row of one matrix and a
 * column of the other: it is taken as a stored row either way, whose elements are contiguous in a panel, and B's is
 * then transposed. --transpose leaves it as it is. */
static int matrix_of(const gm_job *job, gm_matmul_case *c, int which)
{
    gm_dataset *d = &c->operand[which];
    char title[GM_PATH_MAX];
    int flattens = job->options->flatten;
    if (c->is_batch)
        return stack_of(c, which);
    if (which == GM_C0 ? d->view_rank > 2 && !flattens : d->view_rank == 0 || (d->view_rank > 2 && !flattens))
        return gm_fail(GM_EINPUT, "%s: has %d dimensions, a matrix has 2 and a vector 1%s", gm_dataset_title(d, title),
                       d->view_rank,
                       d->view_rank > 2 ? " (--flatten: first dimension x the rest; --batch: a stack)" : "");
    gm_dataset_matrix(d, &c->stored_rows[which], &c->stored_cols[which]);
    if (which != GM_C0 && d->view_rank == 1 && !flattens) {
        c->is_row[which] = 1;
        c->stored_cols[which] = c->stored_rows[which];
        c->stored_rows[which] = 1;
        c->transpose[which] = which == GM_B;
    }
    return GM_OK;
}

static int same_elements(const gm_dataset *a, const gm_dataset *b)
{
    return a->device == b->device && a->inode == b->inode && strcmp(a->name, b->name) == 0 &&
           memcmp(&a->selection, &b->selection, sizeof a->selection) == 0;
}

/* Where an operand of the command line goes. A column-major program reads each dataset, and C, as the transpose of what
 * the file says: C = A B is C' = B' A' in the file, so A and B change places and nothing is transposed. */
static int place_of(const gm_matmul_case *c, int which)
{
    return c->is_column && which != GM_C0 ? GM_B - which : which;
}

const char *gm_matmul_letter(const gm_matmul_case *c, int which)
{
    return letters[place_of(c, which)];
}

static int describe_operands(const gm_job *job, gm_matmul_case *c)
{
    const gm_options *o = job->options;
    const char *text[GM_OPERANDS] = {o->operands[0], o->operand_count > 1 ? o->operands[1] : o->operands[0], o->add};
    static const char *const preferred[GM_OPERANDS] = {"/A", "/B", "/C"};
    char title[GM_PATH_MAX], other[GM_PATH_MAX];
    if (o->operand_count == 1) {
        char *file = malloc(2 * GM_PATH_MAX + GM_NAME_MAX), *name = file ? file + GM_PATH_MAX : NULL;
        int status = file ? gm_name_split(text[GM_A], file, name, name + GM_NAME_MAX)
                          : gm_fail(GM_EDEVICE, "no memory for a name");
        if (!status && *name)
            status = gm_fail(GM_EUSAGE,
                             "matmul needs two matrices: %s names one, expected A and B, or a FILE that has /A and /B",
                             text[GM_A]);
        free(file);
        if (status)
            return status;
    }
    for (int i = 0; i < (c->has_c0 ? GM_OPERANDS : GM_C0); i++) {
        int place = place_of(c, i), status = gm_describe(text[i], preferred[i], &c->operand[place]);
        if (!status)
            status = matrix_of(job, c, place);
        if (status)
            return status;
    }
    if (c->is_batch && c->frames < 0)
        return gm_fail(GM_EINPUT, "--batch: neither %s nor %s is a stack of three dimensions",
                       gm_dataset_title(&c->operand[place_of(c, GM_A)], title),
                       gm_dataset_title(&c->operand[place_of(c, GM_B)], other));
    c->shared = same_elements(&c->operand[GM_A], &c->operand[GM_B]);
    return GM_OK;
}

/* "6x4 (transposed)", "a vector of 4": the shape of A or B, for messages. text has room for GM_SHAPE_TEXT bytes.
 * Returns text. */
static char *shape_of(const gm_matmul_case *c, int which, char *text)
{
    long long rows = c->stored_rows[which], cols = c->stored_cols[which];
    if (c->is_row[which])
        snprintf(text, GM_SHAPE_TEXT, "a vector of %lld", cols);
    else
        snprintf(text, GM_SHAPE_TEXT, "%lldx%lld%s", rows, cols, c->transpose[which] ? " (transposed)" : "");
    return text;
}

/* The shape of C in its file: a vector has no dimension in it. Returns the number of dimensions. */
int gm_matmul_shape(const gm_matmul_case *c, int64_t *dims)
{
    int rank = 0;
    if (c->is_batch)
        dims[rank++] = c->frames;
    if (!c->is_row[GM_A])
        dims[rank++] = c->m;
    if (!c->is_row[GM_B])
        dims[rank++] = c->n;
    return rank;
}

/* C0 has the shape of C, with --flatten as a matrix. */
static int check_c0(const gm_job *job, gm_matmul_case *c)
{
    const gm_dataset *d = &c->operand[GM_C0];
    int64_t dims[3];
    int rank = gm_matmul_shape(c, dims), is_right;
    char title[GM_PATH_MAX], has[GM_SHAPE_TEXT], wants[GM_SHAPE_TEXT];
    if (job->options->flatten)
        is_right = c->stored_rows[GM_C0] == c->m && c->stored_cols[GM_C0] == c->n;
    else
        is_right = d->view_rank == rank && memcmp(d->view, dims, (size_t)rank * sizeof *dims) == 0;
    if (!is_right)
        return gm_fail(GM_EINPUT, "%s is %s, expected the shape of the product, %s", gm_dataset_title(d, title),
                       gm_shape_format(d->view_rank, d->view, has), gm_shape_format(rank, dims, wants));
    c->stored_rows[GM_C0] = c->m;
    c->stored_cols[GM_C0] = c->n;
    return GM_OK;
}

static int set_shape(const gm_job *job, gm_matmul_case *c)
{
    char a[GM_PATH_MAX], b[GM_PATH_MAX], a_shape[GM_SHAPE_TEXT], b_shape[GM_SHAPE_TEXT];
    const int64_t *rows = c->stored_rows, *cols = c->stored_cols;
    c->m = c->transpose[GM_A] ? cols[GM_A] : rows[GM_A];
    c->k = c->transpose[GM_A] ? rows[GM_A] : cols[GM_A];
    c->n = c->transpose[GM_B] ? rows[GM_B] : cols[GM_B];
    int64_t inner = c->transpose[GM_B] ? cols[GM_B] : rows[GM_B];
    if (c->k != inner)
        return gm_fail(GM_EINPUT, "%s is %s and %s is %s: the inner sizes %lld and %lld differ",
                       gm_dataset_title(&c->operand[GM_A], a), shape_of(c, GM_A, a_shape),
                       gm_dataset_title(&c->operand[GM_B], b), shape_of(c, GM_B, b_shape), (long long)c->k,
                       (long long)inner);
    c->is_row[GM_C0] = c->is_row[GM_A] && !c->is_row[GM_B];
    int status = c->has_c0 ? check_c0(job, c) : GM_OK;
    if (status)
        return status;
    int64_t elements;
    if (gm_mul(c->m, c->n, &elements) || gm_mul(elements, 8, &elements) || gm_mul(elements, c->frames, &elements))
        return gm_fail(GM_EUSAGE, "a product of %lldx%lld%s does not fit 64-bit sizes", (long long)c->m,
                       (long long)c->n, c->is_batch ? " in each frame" : "");
    if (c->alpha == 0) /* as in the BLAS, A and B are not read then */
        c->k = 0;
    return GM_OK;
}

/* The precision by the data: the wider of the two. */
static gm_precision natural_precision(const gm_matmul_case *c)
{
    for (int i = GM_A; i <= GM_B; i++)
        if (c->operand[i].type == GM_DTYPE_F64 || gm_dtype_get_kind(c->operand[i].type) != GM_FLOAT)
            return GM_PRECISION_FP64;
    return GM_PRECISION_FP32;
}

/* "fp64, fp32, exact": the precisions that the device of the job supports with the kernels asked for, or (NULL) all.
 * text has room for GM_MESSAGE_MAX bytes. Returns text. */
static char *list_precisions(const gm_job *job, gm_kernel kernel, char *text)
{
    int used = 0;
    *text = '\0';
    for (int i = 0; i < GM_PRECISIONS; i++) {
        const gm_product_query query = {.precision = i, .kernel = kernel, .capability = job ? job->info.capability : 0};
        if (!job || gm_product_find(job->ops, job->device, &query))
            used += snprintf(text + used, (size_t)(GM_MESSAGE_MAX - used), "%s%s", used ? ", " : "",
                             gm_precision_get((gm_precision)i)->name);
    }
    return text;
}

const gm_product *gm_matmul_product(const gm_job *job, const gm_matmul_case *c)
{
    const gm_product_query query = {c->precision, c->kernel, c->m, c->n, c->k, job->info.capability};
    return gm_product_find(job->ops, job->device, &query);
}

int gm_matmul_check_device(const gm_job *job, const gm_matmul_case *c)
{
    char list[GM_MESSAGE_MAX];
    const gm_product *product = gm_matmul_product(job, c);
    if (product && (c->product[0] == '\0' || strcmp(product->kernel, c->product) == 0))
        return GM_OK;
    if (product)
        return gm_fail(GM_EUSAGE,
                       "the first rank multiplies by the kernel %s, the device of this one by %s, which has "
                       "other bits: choose a --kernel for all ranks",
                       c->product, product->kernel);
    list_precisions(job, c->kernel, list);
    if (c->kernel == GM_KERNEL_AUTO)
        return gm_fail(GM_EUSAGE, "--precision %s: not supported by this device of kind %s; supported: %s",
                       gm_precision_get(c->precision)->name, job->ops->kind, list);
    int status = gm_job_check_kernel(job, c->kernel);
    return status ? status
                  : gm_fail(GM_EUSAGE, "--kernel %s: not for --precision %s on the device %s, expected one of: %s",
                            gm_kernel_name(c->kernel), gm_precision_get(c->precision)->name, job->ops->kind, list);
}

/* Does the type hold integers that float64 does not? */
static int is_beyond_float64(gm_dtype type)
{
    return gm_dtype_get_kind(type) != GM_FLOAT && gm_dtype_digits(type) > gm_dtype_digits(GM_DTYPE_F64);
}

/* 64-bit integers are checked where they go to float64, as the user has not asked for a rounding there. */
static void set_checks(gm_matmul_case *c, gm_dtype operand)
{
    int first = c->alpha == 0 ? GM_C0 : GM_A; /* A and B are not read then */
    for (int i = first; i <= (c->has_c0 ? GM_C0 : GM_B); i++) {
        c->is_checked[i] = is_beyond_float64(c->operand[i].type) && (operand == GM_DTYPE_F64 || i == GM_C0);
        if (c->is_checked[i])
            gm_note("%s (%s) is taken as float64: an integer beyond 2^53 is an error", gm_matmul_letter(c, i),
                    gm_dtype_name(c->operand[i].type));
    }
}

/* Sums of 8-bit integers have 32 bits, and none of them may need more. */
static int check_integers(const gm_matmul_case *c)
{
    char title[GM_PATH_MAX];
    int64_t most = INT32_MAX;
    for (int i = GM_A; i <= GM_B; i++) {
        gm_dtype type = c->operand[i].type;
        if (type != GM_DTYPE_I8 && type != GM_DTYPE_U8)
            return gm_fail(GM_EUSAGE, "--precision int8 is for data of i8 or u8; %s is %s",
                           gm_dataset_title(&c->operand[i], title), gm_dtype_name(type));
        most /= type == GM_DTYPE_I8 ? -INT8_MIN : UINT8_MAX;
    }
    return c->k <= most
               ? GM_OK
               : gm_fail(GM_EUSAGE,
                         "--precision int8: a sum of %lld products of %s and %s may exceed 32 bits, expected at "
                         "most %lld; --precision fp64 is exact there",
                         (long long)c->k, gm_dtype_name(c->operand[GM_A].type), gm_dtype_name(c->operand[GM_B].type),
                         (long long)most);
}

static int set_types(const gm_options *o, gm_matmul_case *c)
{
    char title[GM_PATH_MAX], list[GM_MESSAGE_MAX];
    c->precision = o->precision ? gm_precision_find(o->precision) : natural_precision(c);
    if (c->precision == GM_PRECISIONS)
        return gm_fail(GM_EUSAGE, "--precision '%s': expected one of %s", o->precision,
                       list_precisions(NULL, GM_KERNEL_AUTO, list));
    c->kernel = gm_kernel_find(o->kernel);
    const gm_precision_info *how = gm_precision_get(c->precision);
    for (int i = GM_A; i <= GM_B; i++) {
        int fits = gm_dtype_digits(c->operand[i].type) <= how->bits;
        if (!fits && c->precision == GM_PRECISION_EXACT)
            return gm_fail(GM_EUSAGE, "--precision exact is for data that float32 holds; %s is %s",
                           gm_dataset_title(&c->operand[i], title), gm_dtype_name(c->operand[i].type));
        if (!fits && how->operand != GM_DTYPE_F64 && gm_dtype_get_kind(how->operand) == GM_FLOAT)
            gm_note("%s (%s) is rounded to %d significant bits by --precision %s", gm_matmul_letter(c, i),
                    gm_dtype_name(c->operand[i].type), how->bits, how->name);
        if (fits && c->precision == GM_PRECISION_FP16 &&
            gm_dtype_largest(c->operand[i].type) > gm_dtype_largest(GM_DTYPE_F16))
            gm_note(
                "%s (%s) is rounded to float16 by --precision %s: elements beyond 65504 become infinite, those below "
                "6.1e-5 lose digits",
                gm_matmul_letter(c, i), gm_dtype_name(c->operand[i].type), how->name);
    }
    set_checks(c, how->operand);
    c->result = o->type ? gm_dtype_find(o->type) : how->result;
    if (c->result == GM_DTYPES || (c->result != how->result && gm_dtype_get_kind(c->result) != GM_FLOAT))
        return gm_fail(GM_EUSAGE, "--type '%s': expected %s%s for C", o->type,
                       gm_dtype_get_kind(how->result) != GM_FLOAT ? "i32, " : "", gm_dtype_list(GM_FLOAT, list));
    return how->operand == GM_DTYPE_I8 ? check_integers(c) : GM_OK;
}

int gm_matmul_describe(const gm_job *job, gm_matmul_case *c)
{
    const gm_options *o = job->options;
    c->is_batch = o->batch;
    c->frames = c->is_batch ? -1 : 1;
    if (c->is_batch && (o->flatten || o->grid || o->given[GM_OPTION_ROW_panels]))
        return gm_fail(GM_EUSAGE, "--batch takes no --flatten, --grid or --panels: ranks share the frames of stacks");
    c->is_column = strcmp(o->order, "column") == 0;
    c->transpose[place_of(c, GM_A)] = o->transpose && strchr(o->transpose, 'a');
    c->transpose[place_of(c, GM_B)] = o->transpose && strchr(o->transpose, 'b');
    c->alpha = o->alpha;
    c->beta = o->add && !o->given[GM_OPTION_ROW_beta] ? 1 : o->beta;
    c->has_c0 = c->beta != 0;
    c->verify = !o->no_verify;
    if (c->has_c0 && !o->add)
        return gm_fail(GM_EUSAGE, "--beta %g needs C0: --add FILE:DATASET", o->beta);
    int status = describe_operands(job, c);
    if (!status)
        status = set_shape(job, c);
    return status ? status : set_types(o, c);
}
