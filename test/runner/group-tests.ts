/**
 * Puts test files into groups that share a process.
 *
 * Loading the server takes longer than running many a file: half a second for the code, and as much again until it is
 * warm. A file that looks at its process gets a separate one.
 */
import { readFileSync } from 'node:fs'
import { nameOf } from './describe-failure.ts'
import type { TestGroup } from './run-group.ts'
import type { SecondsOf } from './weights.ts'

/** Patterns in the text of a test that looks at its process, or changes it for other files. */
const OWN_PROCESS: readonly RegExp[] = [
  /memoryUsage|heapUsed|HeapStatistics|expose-gc|cpuUsage|getActiveResourcesInfo|PerformanceObserver|\/proc\/self/,
  /TurnProbe|monitorEventLoopDelay|eventLoopUtilization/,
  /process\.(emit|on|once|exit|chdir|umask)\(|process\.env\[|uncaughtException|diagnostics_channel|setFlagsFromString/,
  /mock\.method\((JSON|Buffer|performance)/,
  // A comment in the file says so, where nothing else shows it.
  /a process of its own/,
]

/** Folders whose files share processes, each with its own: they load much the same code. */
const SHARED: readonly string[] = [
  'src/',
  'bench/',
  'test/chaos/',
  'test/conformance/',
  'test/e2e/',
  'test/fuzz/',
  'test/interop/agents/',
  'test/interop/api-client/',
  'test/interop/oidc/',
  'test/interop/openapi/',
  'test/interop/ssh/',
  'test/runner/',
  'test/support/',
]

/**
 * How long a group takes: long against the start of a process and the compilation of its code while it is still cold, and
 * short against the run, so that none ends it alone.
 */
const GROUP_SECONDS = 60

export type TextOf = (file: string) => string

/** Each file is in one group. */
export function groupTests(
  files: readonly string[],
  secondsOf: SecondsOf,
  textOf: TextOf = (file) => readFileSync(file, 'utf8'),
): TestGroup[] {
  const isAlone = (file: string) =>
    secondsOf(file) > GROUP_SECONDS || OWN_PROCESS.some((pattern) => pattern.test(textOf(file)))
  const folderOf = (file: string) => SHARED.find((folder) => file.startsWith(folder))
  const alone = files.filter((file) => folderOf(file) === undefined || isAlone(file))
  const shared = SHARED.flatMap((folder) => {
    const members = files.filter((file) => folderOf(file) === folder && !alone.includes(file))
    return share(members, secondsOf)
  })
  return [...alone.map((file) => [file]), ...shared].map((each) => ({ files: each }))
}

/** The order in which groups are to be run, as short ones fill the end. */
export function longestFirst(groups: readonly TestGroup[], secondsOf: SecondsOf): TestGroup[] {
  const length = ({ files, workers }: TestGroup) =>
    sum(
      files.map((file) => nameOf({ file, workers })),
      secondsOf,
    )
  return groups.toSorted((a, b) => length(b) - length(a))
}

/** Cuts a list of files where a group is full. */
function share(files: readonly string[], secondsOf: SecondsOf): string[][] {
  const groups: string[][] = []
  for (const file of files) {
    const last = groups.at(-1)
    if (last && sum([...last, file], secondsOf) <= GROUP_SECONDS) last.push(file)
    else groups.push([file])
  }
  return groups
}

function sum(files: readonly string[], secondsOf: SecondsOf): number {
  return files.reduce((total, file) => total + secondsOf(file), 0)
}
