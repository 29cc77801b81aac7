/** How long the runs may take, on two quiet cores; each says at its end how it did. */
import { cpuSeconds } from './costs.ts'
import type { TestKind } from './test-kinds.ts'

interface Budget {
  readonly minutes: number
  /** Of all cores, for all that the run starts, PostgreSQL and the checks included. */
  readonly cpuMinutes: number
}

const BUDGETS: Readonly<Record<TestKind, Budget>> = {
  usual: { minutes: 8, cpuMinutes: 14 },
  programs: { minutes: 8, cpuMinutes: 14 },
  unit: { minutes: 1.5, cpuMinutes: 2 },
}

/** Call it when all that was started has ended: the system counts a program once it is over. */
export function againstBudget(kind: TestKind, seconds: number): string {
  const budget = BUDGETS[kind]
  const spent = [
    `${(seconds / 60).toFixed(1)} of ${budget.minutes} minutes`,
    `${(cpuSeconds() / 60).toFixed(1)} of ${budget.cpuMinutes} CPU minutes`,
  ]
  const isOver = seconds / 60 > budget.minutes || cpuSeconds() / 60 > budget.cpuMinutes
  return `${spent.join(', ')}${isOver ? ': more than two quiet cores should need' : ''}`
}
