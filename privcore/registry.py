"""All methods, in one explicit tuple; a new method is one file and one line here."""

from privcore.allocation.analytic import AllocationAnalytic
from privcore.allocation.certified import AllocationCertified
from privcore.allocation.combined import AllocationCombined
from privcore.allocation.decomposition import AllocationDecomposition
from privcore.allocation.direct import AllocationDirect
from privcore.allocation.dong import AllocationDong
from privcore.allocation.largest import AllocationLargest
from privcore.allocation.montecarlo import AllocationMonteCarlo
from privcore.allocation.poisson_certified import PoissonCertified
from privcore.allocation.poisson_pld import PoissonPld
from privcore.allocation.poisson_renyi import PoissonRenyi
from privcore.allocation.recursive import AllocationRecursive
from privcore.allocation.shuffling_clones import ShufflingClones
from privcore.allocation.shuffling_largest import ShufflingLargest
from privcore.allocation.truncated import AllocationTruncated
from privcore.allocation.unamplified_exact import UnamplifiedExact
from privcore.allocation.utility_formula import UtilityFormula
from privcore.allocation.utility_simulation import UtilitySimulation
from privcore.auditing.approximate import AuditingApproximate
from privcore.auditing.attaining import AuditingAttaining
from privcore.auditing.best import AuditingBest
from privcore.auditing.ceiling import AuditingCeiling
from privcore.auditing.combined import AuditingCombined
from privcore.auditing.dpsgd import AuditingDpsgd
from privcore.auditing.expected import AuditingExpected
from privcore.auditing.gaussian import AuditingGaussian
from privcore.auditing.independent import AuditingIndependent
from privcore.auditing.laplace import AuditingLaplace
from privcore.auditing.nasr import AuditingNasr
from privcore.auditing.planned import AuditingPlanned
from privcore.auditing.plannedapproximate import AuditingPlannedApproximate
from privcore.auditing.plannedsteinke import AuditingPlannedSteinke
from privcore.auditing.power import AuditingPower
from privcore.auditing.programme import AuditingProgramme
from privcore.auditing.recursive_tail import AuditingRecursion
from privcore.auditing.revealed_tail import AuditingRevealed
from privcore.auditing.runs import AuditingRuns
from privcore.auditing.steinke import AuditingSteinke
from privcore.auditing.summed import AuditingSummed
from privcore.auditing.trained import AuditingTrained
from privcore.errors import unknown
from privcore.labels.bag import LabelsBag
from privcore.labels.bernstein import LabelsBernstein
from privcore.labels.blind import LabelsBlind
from privcore.labels.cells import LabelsCells
from privcore.labels.chernoff import LabelsChernoff
from privcore.labels.classes import LabelsClasses
from privcore.labels.composition import LabelsComposition
from privcore.labels.dominated import LabelsDominated
from privcore.labels.fourier import LabelsFourier
from privcore.labels.gauss import LabelsGauss
from privcore.labels.infinite import LabelsInfinite
from privcore.labels.likelihood import LabelsLikelihood
from privcore.labels.response import LabelsResponse
from privcore.labels.root import LabelsRoot
from privcore.labels.sampling import LabelsSampling
from privcore.labels.smoothing import LabelsSmoothing
from privcore.labels.trained import LabelsTrained
from privcore.labels.translated import LabelsTranslated
from privcore.labels.variation import LabelsVariation
from privcore.labels.wu import LabelsWu
from privcore.membership.data.clopper import MembershipClopper
from privcore.membership.data.mcdiarmid import MembershipMcDiarmid
from privcore.membership.discrete.asymptotic import MembershipAsymptotic
from privcore.membership.discrete.corollary import MembershipCorollary
from privcore.membership.discrete.deviation import MembershipDeviation
from privcore.membership.discrete.diversity import MembershipDiversityMethod
from privcore.membership.discrete.enumeration import MembershipEnumeration
from privcore.membership.discrete.exact import MembershipExact
from privcore.membership.discrete.planning import MembershipPlanning
from privcore.membership.discrete.roc import MembershipRocMethod
from privcore.membership.discrete.schwarz import MembershipSchwarz
from privcore.membership.experiments.classifier import MembershipClassifier
from privcore.membership.experiments.guarantee import MembershipGuarantee
from privcore.membership.experiments.noise import MembershipNoise
from privcore.membership.experiments.purity import MembershipPurity
from privcore.membership.experiments.trained import MembershipTrained
from privcore.membership.gaussian_mean.leading import MembershipLeading
from privcore.membership.gaussian_mean.plane import MembershipPlane
from privcore.membership.gaussian_mean.proposition import MembershipProposition
from privcore.membership.gaussian_mean.quadrature import MembershipQuadrature
from privcore.membership.learner.arcs import MembershipArcs
from privcore.membership.learner.channel import MembershipChannel
from privcore.membership.learner.concentration import MembershipConcentration
from privcore.membership.learner.information import MembershipInformation
from privcore.membership.learner.majority import MembershipMajority
from privcore.membership.learner.overfitting import MembershipOverfitting
from privcore.membership.learner.published import MembershipPublished
from privcore.membership.learner.sharp import MembershipSharp
from privcore.membership.regression.influence import MembershipInfluence
from privcore.membership.regression.interpolation import MembershipInterpolation
from privcore.membership.regression.sampling import MembershipSampling
from privcore.membership.regression.sobol import MembershipSobol
from privcore.membership.regression.threshold import MembershipThreshold
from privcore.method import Method
from privcore.problem import Problem

METHODS: tuple[type[Method], ...] = (
    AllocationAnalytic,
    AllocationCertified,
    AllocationCombined,
    AllocationDecomposition,
    AllocationDirect,
    AllocationDong,
    AllocationLargest,
    AllocationMonteCarlo,
    AllocationRecursive,
    AllocationTruncated,
    PoissonCertified,
    PoissonPld,
    PoissonRenyi,
    ShufflingClones,
    ShufflingLargest,
    UnamplifiedExact,
    UtilityFormula,
    UtilitySimulation,
    AuditingApproximate,
    AuditingAttaining,
    AuditingCombined,
    AuditingDpsgd,
    AuditingGaussian,
    AuditingIndependent,
    AuditingLaplace,
    AuditingProgramme,
    AuditingRecursion,
    AuditingRevealed,
    AuditingSteinke,
    LabelsBag,
    LabelsBernstein,
    LabelsBlind,
    LabelsCells,
    LabelsChernoff,
    LabelsClasses,
    LabelsComposition,
    LabelsDominated,
    LabelsFourier,
    LabelsGauss,
    LabelsInfinite,
    LabelsLikelihood,
    LabelsResponse,
    LabelsRoot,
    LabelsSampling,
    LabelsSmoothing,
    LabelsTrained,
    LabelsTranslated,
    LabelsVariation,
    LabelsWu,
    AuditingTrained,
    AuditingBest,
    AuditingCeiling,
    AuditingExpected,
    AuditingPlanned,
    AuditingPlannedApproximate,
    AuditingPlannedSteinke,
    AuditingPower,
    AuditingRuns,
    AuditingNasr,
    AuditingSummed,
    MembershipExact,
    MembershipAsymptotic,
    MembershipSchwarz,
    MembershipCorollary,
    MembershipDeviation,
    MembershipDiversityMethod,
    MembershipEnumeration,
    MembershipPlanning,
    MembershipRocMethod,
    MembershipQuadrature,
    MembershipPlane,
    MembershipInformation,
    MembershipProposition,
    MembershipLeading,
    MembershipSobol,
    MembershipSampling,
    MembershipInterpolation,
    MembershipThreshold,
    MembershipInfluence,
    MembershipSharp,
    MembershipPublished,
    MembershipChannel,
    MembershipMajority,
    MembershipOverfitting,
    MembershipArcs,
    MembershipConcentration,
    MembershipMcDiarmid,
    MembershipClopper,
    MembershipTrained,
    MembershipNoise,
    MembershipClassifier,
    MembershipPurity,
    MembershipGuarantee,
)

PROBLEMS: tuple[type[Problem], ...] = tuple(dict.fromkeys(p for m in METHODS for p in m.problems))


def find(name: str) -> type[Method]:
    """Return the method class of that name, such as `allocation.certified`.

    Raises:
        UnknownNameError: There is none; the closest name is suggested.
    """
    for method in METHODS:
        if method.name == name:
            return method
    raise unknown("method", name, [m.name for m in METHODS])


def find_problem(name: str) -> type[Problem]:
    """Return the problem class of that name, such as `allocation-epsilon`.

    Raises:
        UnknownNameError: There is none; the closest name is suggested.
    """
    for problem in PROBLEMS:
        if problem.name == name:
            return problem
    raise unknown("problem", name, [p.name for p in PROBLEMS])


def methods_for(problem: Problem) -> dict[type[Method], str | None]:
    """Return every method for this kind of problem; None where it applies, else the reason why not."""
    return {m: m().applies(problem) for m in METHODS if isinstance(problem, m.problems)}
