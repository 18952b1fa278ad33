"""Examples and batch size in the macros for SQL, where they determine steps and sampling probability."""

from privcore.problem import Problem
from privcore.training import ANY_STEPS, MORE_STEPS, SIZES, sampler_of

MOST = SIZES["examples"].upper
RATE_AT_LEAST = f"""
    create or replace macro rate_at_least(used, n) as (
        select case when (q * pow(2, s))::hugeint * try_cast(n as hugeint)
                      >= try_cast(used as hugeint) * pow(2, s)::hugeint then q
               when q is not null then least(1.0, nextafter(q, 1.0::double)) end
        from (select q, 54 - floor(log2(q)) as s
              from (select case when used between 1 and n and n <= {MOST} then used / n end as q))
    )
    """
"""Macro for used / n, rounded up: the quotient of doubles is the nearest, and integers compare it with the
exact one."""


def sizes_of(kind: type[Problem]) -> list[str]:
    """Return the numbers that may replace the steps of a problem, unless it has them as fields."""
    return [name for name in SIZES if name not in kind.parameters] if sampler_of(kind) else []


def sized(kind: type[Problem], name: str) -> str:
    """Return the text of a field, computed from examples and batch size if it was not given."""
    sampler, raw = sampler_of(kind), f"raw.{name}"
    size, batch = _number("examples"), _number("batch_size")
    if name not in ("steps", "sampling_probability"):
        return raw
    rounded = "ceil" if sampler in MORE_STEPS else "floor"
    derived = f"{rounded}({size} / {batch})" if name == "steps" else f"rate_at_least({batch}, {size})"
    both = f"error('Expected {name} or batch_size, got both.')"
    if name == "steps" and sampler in ANY_STEPS:
        both = f"{raw}::varchar"  # any number of steps with batches of this size
    return (
        f"case when raw.batch_size is null then {raw}::varchar when {raw} is not null then {both} "
        f"else ({derived})::varchar end"
    )


def _number(name: str) -> str:
    return f"as_double(raw.{name})"


def sound_sizes(kind: type[Problem]) -> str:
    """Return the condition on examples and batch size, if they were given, or an error."""
    size, batch = "as_double(given.examples)", "as_double(given.batch_size)"
    whole = f"{size} = floor({size}) and {batch} = floor({batch}) and {size} <= {MOST}"
    sound = f"{batch} between 1 and {size} and {whole}"
    absent = "given.batch_size is null" + (
        "" if "examples" in kind.parameters else " and given.examples is null"
    )
    return f"expected(given.batch_size, ({absent} or ({sound})), 'batch_size in {{1, ..., examples}}')"
