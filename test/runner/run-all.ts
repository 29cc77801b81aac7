/** Runs groups of tests, and checks beside them, and puts together what became of all. */
import { ALONE } from './alone.ts'
import { runCheck } from './checks.ts'
import type { FileCost } from './costs.ts'
import type { Counts } from './report-tests.ts'
import { type GroupOutcome, type GroupSettings, runGroup, type TestGroup } from './run-group.ts'
import { type Crew, type Job, runJobs } from './run-jobs.ts'

export interface Outcome extends GroupOutcome {
  readonly failedChecks: readonly string[]
}

/** One after the other. */
export const ONE_BY_ONE: Crew = { least: 1, most: 1, idleCores: () => 0, lookMs: 60_000 }

/** Groups start in the order of their list, those of `ALONE` when all others have ended. */
export async function runAll(
  groups: readonly TestGroup[],
  checks: readonly string[],
  crew: Crew,
  settings: GroupSettings,
): Promise<Outcome> {
  const outcomes: GroupOutcome[] = []
  const failedChecks: string[] = []
  const jobOf =
    (group: TestGroup): Job =>
    async () =>
      void outcomes.push(await runGroup(group, settings))
  const checking = checks.map(
    (check): Job =>
      async () => {
        if (!(await runCheck(check, settings))) failedChecks.push(check)
      },
  )
  const isAlone = ({ files }: TestGroup) => files.some((file) => ALONE.includes(file))
  const beside = groups.filter((group) => !isAlone(group))
  await runJobs([...checking, ...beside.map(jobOf)], crew, settings.signal)
  await runJobs(groups.filter(isAlone).map(jobOf), ONE_BY_ONE, settings.signal)
  return { ...together(outcomes), failedChecks }
}

function together(outcomes: readonly GroupOutcome[]): GroupOutcome {
  const sum = (count: keyof Counts) => outcomes.reduce((total, { counts }) => total + counts[count], 0)
  return {
    failed: outcomes.flatMap(({ failed }) => failed),
    counts: { tests: sum('tests'), passed: sum('passed'), skipped: sum('skipped') },
    costs: outcomes.flatMap(({ costs }): readonly FileCost[] => costs),
  }
}
