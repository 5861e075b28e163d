/* The findings of the check: gathered, said, reported, and as attributes of the result. */
#include "base/log.h"
#include "src/matmul/op.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* The worst of all verdicts and the sum of their counts. Rank 0 has it then. Collective. */
static int gather_verdict_all(const gm_job *job, gm_verdict *verdict)
{
    gm_verdict *all = calloc((size_t)job->ranks->size, sizeof *all);
    int status = gm_job_agree_all(job, all ? GM_OK : gm_fail(GM_EDEVICE, "no memory for the results of the check"));
    if (!status)
        status = gm_gather_all(job->ranks, verdict, sizeof *verdict, all);
    for (int r = 1; r < job->ranks->size && !status && job->ranks->rank == 0; r++)
        gm_verdict_add(verdict, &all[r]);
    free(all);
    return status;
}

static int underflows(const gm_verdict *v)
{
    return v->underflow[GM_A] || v->underflow[GM_B];
}

/* The outcome of the check, in a few words. */
static const char *outcome(const gm_matmul_case *c, const gm_verdict *v)
{
    if (!c->verify)
        return "none";
    if (v->is_wrong)
        return "failed: random vectors";
    if (v->checked == 0 && v->skipped > 0)
        return v->large > 0   ? "not possible: elements are too large to be checked"
               : v->small > 0 ? "not possible: elements are too small to be checked"
                              : "not possible: no finite row or column";
    return v->skipped > 0 || underflows(v) ? "passed in part: random vectors" : "passed: random vectors";
}

/* The share of a scheme in the product, in percent. */
static double share_of(const gm_verdict *v, gm_scheme scheme)
{
    double all = 0;
    for (int s = 0; s < GM_SCHEMES; s++)
        all += v->schemes[s];
    return all > 0 ? 100 * v->schemes[scheme] / all : 0;
}

static const struct {
    const char *name, *attribute;
} schemes[GM_SCHEMES] = {[GM_SCHEME_F16] = {"fp16x3", "fp16x3_percent"},
                         [GM_SCHEME_BF16] = {"bf16x6", "bf16x6_percent"},
                         [GM_SCHEME_F32] = {"fp32", "fp32_percent"}};

/* Was it a product in float32 on tensor cores? */
static int has_schemes(const gm_verdict *v)
{
    return v->schemes[GM_SCHEME_F16] + v->schemes[GM_SCHEME_BF16] + v->schemes[GM_SCHEME_F32] > 0;
}

static void note_schemes(const gm_verdict *v)
{
    if (has_schemes(v))
        gm_note("multiplied as %s %.4g %%, %s %.4g %%, %s %.4g %%", schemes[0].name, share_of(v, 0), schemes[1].name,
                share_of(v, 1), schemes[2].name, share_of(v, 2));
}

static json_t *schemes_json(const gm_verdict *v)
{
    json_t *shares = json_object();
    for (int s = 0; s < GM_SCHEMES; s++)
        json_object_set_new(shares, schemes[s].name, json_real(share_of(v, s)));
    return shares;
}

static void report_verdict(gm_job *job, const gm_matmul *p, const gm_verdict *v)
{
    const gm_matmul_case *c = p->c;
    const gm_deviation *line = v->is_wrong ? &v->failed : &v->passed;
    char tile[96];
    int passed = c->verify && !v->is_wrong && (v->checked > 0 || v->skipped == 0);
    job->report.verification = json_pack(
        "{s:s, s:s, s:f, s:f, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "method",
        c->verify ? "random vectors" : "none", "outcome", outcome(c, v), "residual", fmin(line->residual, DBL_MAX),
        "threshold", line->threshold, "passed", passed, "lines_checked", (json_int_t)v->checked, "lines_skipped",
        (json_int_t)v->skipped, "bad_rows", (json_int_t)v->bad_rows, "bad_columns", (json_int_t)v->bad_cols,
        "tiles_repaired", (json_int_t)v->repaired, "nan", (json_int_t)v->nonfinite.nan, "inf",
        (json_int_t)v->nonfinite.inf, "overflow", (json_int_t)v->nonfinite.overflow, "underflow",
        v->is_wrong ? json_null() : json_boolean(underflows(v)), "schemes_percent", schemes_json(v));
    if (v->is_wrong)
        return;
    if (v->repaired > 0)
        gm_warn("%lld tile%s of C failed the check and passed it when computed once more, the first is %s: a device "
                "is not reliable",
                (long long)v->repaired, v->repaired > 1 ? "s" : "", gm_tile_format(&p->plan, &v->suspect[0], tile));
    for (int i = GM_A; i <= GM_B; i++)
        if (v->underflow[i])
            gm_warn(
                "%s has elements that are too small for float32 (below 1.2e-38): they have lost digits or become 0; "
                "--precision fp64 holds them",
                gm_matmul_letter(c, i));
    if (v->small > 0)
        gm_warn(
            "%lld rows and columns of blocks could not be checked, as the rounding of --precision %s and of C (%s) is "
            "as large as their elements, or float64 does not hold their squares; %lld were",
            (long long)v->small, gm_precision_get(c->precision)->name, gm_dtype_name(c->result), (long long)v->checked);
    if (v->nonfinite.nan + v->nonfinite.inf + v->nonfinite.overflow + (uint64_t)(v->skipped - v->small) > 0) {
        char lines[96] = "";
        if (c->verify)
            snprintf(lines, sizeof lines, "; %lld rows and columns of blocks could not be checked, %lld were",
                     (long long)(v->skipped - v->small), (long long)v->checked);
        gm_warn("C%s has %llu NaN, %llu infinite and %llu overflowed elements%s",
                v->repaired > 0 ? ", as it was computed first," : "", (unsigned long long)v->nonfinite.nan,
                (unsigned long long)v->nonfinite.inf, (unsigned long long)v->nonfinite.overflow, lines);
    }
    note_schemes(v);
    if (c->verify && v->checked > 0)
        gm_note("the product passed its check: residual %.3g, detection threshold %.3g", v->passed.residual,
                v->passed.threshold);
}

/* Gathers and reports the verdicts, also of a product that failed its check: its message is kept. Collective. */
static int judge_all(gm_job *job, gm_matmul *p, int status)
{
    if (status != GM_OK && status != GM_ECHECK)
        return status;
    int found = status ? GM_OK : gm_job_agree_all(job, gm_matmul_underflow_read(p));
    if (found)
        return found;
    gm_error cause;
    gm_error_get(&cause);
    gm_error_clear();
    int gathered = gather_verdict_all(job, &p->verdict);
    if (gathered)
        return gathered;
    if (job->ranks->rank == 0)
        report_verdict(job, p, &p->verdict);
    return status ? gm_fail(cause.code, "%s", cause.text) : GM_OK;
}

static void add_attributes(gm_run *run, const gm_matmul *p)
{
    const gm_matmul_case *c = p->c;
    const gm_verdict *v = &p->verdict;
    gm_run_add_text(run, "precision", gm_precision_get(c->precision)->name);
    gm_run_add_text(run, "kernel", p->product->kernel);
    for (int s = 0; s < GM_SCHEMES && has_schemes(v); s++)
        gm_run_add_real(run, schemes[s].attribute, share_of(v, s));
    gm_run_add_text(run, "verification", outcome(c, v));
    if (!c->verify)
        return;
    gm_run_add_real(run, "verification_residual", v->passed.residual);
    gm_run_add_real(run, "verification_threshold", v->passed.threshold);
    gm_run_add_integer(run, "verification_repaired", v->repaired);
}

int gm_matmul_op_judge_all(gm_run *run, gm_matmul *p, int status)
{
    run->job->report.flop = p->flop;
    status = judge_all(run->job, p, status);
    add_attributes(run, p);
    return status;
}
