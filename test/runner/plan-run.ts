/** Plans a run: which files share a process, which run twice, in which order, and what is checked beside them. */
import { checkCommands } from './checks.ts'
import type { RunFlags } from './flags.ts'
import { groupTests, longestFirst } from './group-tests.ts'
import type { TestGroup } from './run-group.ts'
import type { Selected } from './select-tests.ts'
import { TWO_WORKERS } from './two-workers.ts'
import { readWeights } from './weights.ts'

export interface Plan {
  readonly groups: readonly TestGroup[]
  readonly checks: readonly string[]
  /** In words. */
  readonly summary: string
}

export function planRun({ files, patterns, isWhole }: Selected, { kind, long, workers }: RunFlags): Plan {
  const secondsOf = readWeights()
  // A pattern would match the names of the files that share a process, too.
  const isShared = long === undefined && patterns.length === 0
  const grouped = (each: readonly string[]) =>
    isShared ? groupTests(each, secondsOf) : each.map((file) => ({ files: [file] }))
  const twice = isWhole && workers === undefined ? TWO_WORKERS.filter((file) => files.includes(file)) : []
  const again = grouped(twice).map((group) => ({ ...group, workers: '2' }))
  const names = patterns.map((pattern) => ` named /${pattern}/`).join(',')
  const servers = workers === undefined ? '' : `, servers with workers: ${workers}`
  const repeated = twice.length === 0 ? '' : `, ${twice.length} of them again with two workers`
  return {
    groups: longestFirst([...grouped(files), ...again], secondsOf),
    checks: isWhole && kind === 'usual' ? checkCommands() : [],
    summary: `tests: ${files.length} ${files.length === 1 ? 'file' : 'files'}${names}${servers}${repeated}`,
  }
}
