"""Command lines that cannot be answered: each is one sentence and exit code 2, and leaves nothing behind."""

import re
import shlex
from pathlib import Path

import pytest

from tests.flows.small_store import Command

REFUSED = {
    "ask": """
        unamplified-epsilom sigma=1 => Unknown problem unamplified-epsilom. Did you mean unamplified-epsilon?
        unamplified-epsilon sigma=1 => Expected delta for unamplified-epsilon.
        unamplified-epsilon sigma=nan delta=1e-5 => ...got sigma=nan.
        unamplified-epsilon sigma=one delta=1e-5 => ...got sigma='one'.
        unamplified-epsilon sigma=True delta=1e-5 => ...got sigma='True'.
        unamplified-epsilon sigma=1 delta=2 => Expected delta in (0, 1), got delta=2.
        => Expected either the name of a problem or --batch with a file, got none.
        --batch x.jsonl sigma=1 => ...--batch with a file, got both, sigma=1 and x.jsonl.
        shuffling-epsilon sigma=1 steps=10 delta=1e-5 adjacency=add-remove
            => ...add-remove is defined only if every epoch leaves out examples (--drop-last
        --batch missing.jsonl => missing.jsonl
    """,
    "ask unamplified-epsilon sigma=1 delta=1e-5": """
        sgma=1 => Unknown field of unamplified-epsilon sgma. Did you mean sigma?
        sigma=1 => Expected each field once, got sigma twice.
        steps=1.5 => Expected steps in
        --method unamplified.exakt => ...Did you mean unamplified.exact?
        --batch x.jsonl => ...--batch with a file, got both, unamplified-epsilon and x.jsonl.
        --limit-bytes nan => ...--limit-bytes
        --limit-bytes -1 => ...--limit-bytes
    """,
    "audit": """
        --counts 100 20 15 --design independent --delta 1 => Expected delta in [0, 1), got delta=1.
    """,
    "audit --delta 1e-5": """
        --counts 100 20 21 --design independent => Expected correct <= guesses, got correct=21, guesses=20.
        --counts 10 20 15 --design independent => Expected guesses <= canaries, got guesses=20, canaries=10.
        --counts 0 0 0 --design independent => Expected canaries in {1, ..., 1000000000}, got canaries=0.
        --counts 100 20 1.5 --design independent => Expected correct in {0, ..., 1000000000}, got correct=1.5.
        --counts 100 20 15 --design pairs --claim laplace(scale=1)
            => The noise of laplace is stated for an added or removed example; for a design that
        => Expected either --scores, --counts, or --roc with --runs.
        --scores x.csv => Expected --guesses with --scores, a number fixed before seeing the scores.
        --scores x.csv --guesses 2 => Expected a file with a column of numbers, but x.csv is not
        --counts 100 20 15
            => Expected --design with --counts: independent (each canary was in or out by its own fair
        --counts 100 20 15 --design coins => Expected --design independent (each
        --counts 100 20 15 --design candidates => Expected --alternatives with --design candidates, the number
        --scores x.csv --guesses 2 --one-sided --clearest => Expected --one-sided or --clearest, got both.
    """,
    "audit --delta 1e-5 --counts 100 20 15 --design independent": """
        --confidence 1 => Expected confidence in [0.5, 1), got confidence=1.
        --alternatives 1 => Expected alternatives in {2, ..., 1000000}, got alternatives=1.
        --claimed-epsilon 1 --claim gaussian(sigma=1) => Expected --claim or --claimed-epsilon, got both.
        --claim gauss(sigma=1) => Expected claim in {KIND(FIELD=VALUE,...); ... of
        --claimed-epsilon -1 => Expected claimed_epsilon in [0, 700], got
        --guesses 20 => Expected --guesses, --one-sided, --clearest, --null-check with --scores only.
        --scores x.csv => Expected either --scores, --counts, or --roc with --runs.
        --alternatives 3 => Expected --design candidates with --alternatives 3, got independent.
        --centre 1 => Expected --centre with --clearest only, and a number, got 1.
    """,
    "compare": """
        --sigma 1.1 --steps 100 => Expected delta for allocation-epsilon.
        --sigma 1.1 --delta 1e-5 --examples 1000 --batch-size x => Expected batch_size in
        --sigma 1.1 --delta 1e-5 --examples 1000 --batch-size 300 --steps 3
            => Expected steps or batch_size, got both.
        --sigma nan --steps 100 --delta 1e-5 => Expected sigma in
    """,
    "compare --sigma 1.1 --steps 100 --delta 1e-5": """
        --participations 200 => Expected participations <= steps
        --adjacency remove-two => Expected adjacency in {
        --sampling poisson => ...--sampling
    """,
    "epsilon": """
        --sampling shuffling --sigma 1 --steps 10 --delta 1e-5 --adjacency add-remove
            => ...add-remove is defined only if every epoch leaves out examples (--drop-last
        --sampling none --delta 1e-5 => Expected sigma for unamplified-epsilon.
        --sampling none --delta 1e-5 --sigma abc => ...got sigma='abc'.
        --sampling none --delta nan --sigma 1 => Expected delta in (0, 1), got delta=nan.
        --sampling none --delta 1e-5 --sigma 1 --participations 2 => Expected participations <= steps
        --sampling none --delta 1e-5 --sigma 1 --adjacency remove-two => Expected adjacency in {
        --sampling none --delta 1e-5 --sgma 1 => ...--sgma
        --sampling allocation --sigma 1 --steps 9 --limit-seconds nan => ...--limit-seconds
        --sampling allocation --sigma 1 --steps 9 --limit-seconds -1 => ...--limit-seconds
        --run poisson(sigma=1,sampling_probability=0.1,steps=3,group=2) --delta 1e-5 --adjacency replace-one
            => No theorem about replacing several examples
    """,
    "frobnicate": """
        => ...frobnicate
    """,
    "labels": """
        --prior uniform => Expected --bag-size, --versus-rr, or both.
        --prior normal --bag-size 2 => Expected prior in {uniform, beta
        --prior 1.5 --bag-size 2 => Expected probabilities of a prior in [0, 1], got 1.5.
        --prior uniform --bag-size 0 => Expected bag_size in {1, ..., 1000000}, got
        --prior uniform --versus-rr 0 => Expected --versus-rr > 0, got 0
        --prior uniform --versus-rr inf => Expected a finite --versus-rr, got inf.
        --prior uniform --bag-size 2 --mechanism rr => Expected --mechanism in {llp,
        --prior uniform --bag-size 2 --label-epsilon 1 => Expected label_epsilon=inf for
        --prior column(/nowhere.csv,eta) --bag-size 2 => Expected a file with a column
    """,
    "lookup": """
        => ...NAME
        shuffling-epsilon sigma=1 steps=10 delta=1e-5 adjacency=add-remove
            => ...add-remove is defined only if every epoch leaves out examples (--drop-last
        quickstart --explain => Expected a problem with its fields for --explain
        unamplified-epsilon sigma=1 delta=1e-5 --keep => Expected --compute with --keep.
        quickstart --compute => Expected a problem with its fields for --compute, got a sweep.
    """,
    "membership": """
        => Expected at least one fact: --law, --sample, --epsilon, --bits, --information or
        --bits 3 => Expected --records with --bits: the number of records in the training set.
        --law uniform(3) => Expected --records with --law
        --law atoms(0.5,0.4) --records 9 => Expected probabilities
        --law atoms(1.5,-0.5) --records 9 => Expected
        --law normal(0,1) --records 9 => Expected law in
        --law uniform(3) --records 0 => Expected records in
        --law uniform(3) --records 9 --member-weight 0 => Expected member_weight in
        --law uniform(3) --records 9 --nonmember-share 1 => Expected nonmember_share in
        --law column(none.csv,city) --records 9 => Expected a file
        --epsilon 1 => Expected --adjacency and --delta with --epsilon: at the same epsilon, add-remove
        --epsilon 1 --delta 0 => Expected --adjacency and --delta with --epsilon
        --epsilon 1 --adjacency add-remove => Expected --adjacency and --delta with --epsilon
        --delta 0.1 --bits 1 --records 9 => Expected --delta and --adjacency with
        --adjacency add-remove --bits 1 => Expected --delta and --adjacency with
        --epsilon 1 --delta 0 --neighbours cousins
            => Expected adjacency in {add-remove, replace-one} (add-remove: one record is added or removed;
        --epsilon 1 --delta 0 --adjacency "" => Expected adjacency in {add-remove, replace-one}
        --epsilon 1 --adjacency add-remove --neighbours add-remove
            => Expected --adjacency or its former name --neighbours, got both.
        --attack 9 5 0 5 => Expected true_positives <= members
        --attack a 5 0 5 => Expected four counts for --attack, got a 5 0 5.
        --attack -1 5 0 5 => Expected four counts for --attack, got -1 5 0 5.
        --information nan => Expected information in
        --information 1 --confidence 1 => Expected confidence_level in
    """,
    "noise": """
        --epsilon 0 --sampling none --delta 1e-5 => Expected epsilon in (0, 10000], got epsilon=0.
        --epsilon x --sampling none --delta 1e-5 => ...got epsilon='x'.
        --epsilon 1 --sampling none --delta 1e-5 --precision 0 => Expected precision in [1e-09, 1]
        --epsilon 1 --sampling none => Expected delta for unamplified-epsilon.
        --sampling none --delta 1e-5 => ...--epsilon
    """,
    "plan": """
        => ...SWEEP
        a b => Expected the name of a problem before b
        shuffling-epsilon sigma=1 steps=10 delta=1e-5 adjacency=add-remove
            => ...add-remove is defined only if every epoch leaves out examples (--drop-last
        quickstart --max-points nan => ...--max-points
        quickstart --max-points -1 => ...--max-points
    """,
    "plan quickstart --store": """
        s3:// => ...it has no name of a bucket
        s3: => ...it has no name of a bucket
        s3://ab => ...the name of a bucket has 3 to 255
        s3://bucket/a*b => ...a part of the prefix
        gs://bucket => ...got 'gs://bucket': only the scheme s3 is known
        gs:// => ...only the scheme s3 is known
        file: => ...only the scheme s3 is known
    """,
    "profile": """
        --sampling allocation --sigma 1 => Expected steps for
        --sampling allocation --sigma -1 --steps 3 => Expected sigma in
        --run none(sigma=2,steps=4) => Expected adjacency
        --run dice(sigma=1) --adjacency add => ...dice
        --run missing.toml => ...No such file
        --sampling allocation --sigma 1 --redraw once => Expected no redraw with sampling allocation
        --sampling allocation --sigma 1 --batch-size 3 => Expected examples together with batch_size
        --run none(sigma=2,steps=4) --adjacency near => Expected adjacency in
        --run shuffling(sigma=3,steps=100,epochs=2,redraw=each-epoch) --adjacency add-remove
            => Expected adjacency zero-out or replace-one
    """,
    "profile --run none(sigma=2,steps=4) --adjacency add-remove": """
        --sigma 1 => Expected sigma in the phases of the run, got --sigma with --run
        --batch-size 9 => Expected batch_size in the phases of the run
        --delta 2 => Expected delta in
        --delta small => Expected delta in
        --fpr 0 => Expected false_positive_rate in
        --smallest-fpr 0.6 => Expected smallest_false_positive_rate in
        --chart roc.gif => Expected a chart in a file .png, .svg, .pdf, .html
    """,
    "run": """
        shuffling-epsilon sigma=1 steps=10 delta=1e-5 adjacency=zero-out,add-remove
            => ...add-remove is defined only if every epoch leaves out examples (--drop-last
    """,
    "run quickstart": """
        --wrokers 2 => ...--wrokers
        --workers 0 => ...--workers
        --workers two => ...--workers
        --workers nan => ...--workers
        --max-points 0 => ...--max-points
        --engine spark => ...spark
        --engine serial --ray-address here:1
            => Expected --ray-address with --engine ray only, got it with serial.
    """,
    "run unamplified-epsilon sigma=1 delta=1e-5 --store": """
        s3:// => ...it has no name of a bucket
        s3: => ...it has no name of a bucket
        s3://ab => ...the name of a bucket has 3 to 255
        s3://bucket/a*b => ...a part of the prefix
        gs://bucket => ...got 'gs://bucket': only the scheme s3 is known
        gs:// => ...only the scheme s3 is known
        file: => ...only the scheme s3 is known
    """,
    "sql": """
        => ...QUERY
        "select 1" --limit-seconds nan => ...--limit-seconds
        "select 1" --limit-seconds -1 => ...--limit-seconds
        "select 1" --store nowhere => No store found at nowhere
        "select 1" --json --csv => Expected --json or --csv, got both.
    """,
    "status": """
        nothing.toml => nothing.toml
        --store none => No store found at
    """,
    "steps": """
        --examples 10 => ...--batch-size
        --examples 10 --batch-size 11 => Expected batch_size <= examples, got batch_size=11
        --examples 10 --batch-size 4 --participations 3 => Expected participations <= examples
        --examples 10 --batch-size nan => Expected batch_size in
        --examples 10 --batch-size 3 --sigma 1 => Expected delta for allocation-epsilon.
        --examples 10 --batch-size 3 --adjacency add => Expected sigma, delta for
        --examples 10 --batch-size 3 --epochs 0 => Expected epochs in
    """,
}
"""By first words: the other words, and the beginning of the sentence, or a part of it after three dots."""

CASES = [
    (f"{first} {words.strip()}", sentence)
    for first, rows in REFUSED.items()
    for words, sentence in re.findall(r"^ *(.*?)\s*=> (.*)$", rows, re.MULTILINE)
]


@pytest.mark.sampled(24)
@pytest.mark.parametrize(("line", "sentence"), CASES, ids=[line for line, _ in CASES])
def test_what_cannot_be_answered_is_one_sentence(
    line: str,
    sentence: str,
    privsweep: Command,
    tmp_path: Path,
) -> None:
    assert privsweep(*shlex.split(line)) == 2
    assert privsweep.out == ""
    assert privsweep.err.startswith("privsweep: " + ("" if sentence.startswith("...") else sentence))
    assert sentence.removeprefix("...") in privsweep.err
    assert privsweep.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
