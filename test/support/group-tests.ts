/**
 * Puts test files into groups that share a process.
 *
 * Loading the server takes longer than running many a file: half a second for the code, and as much again until it is
 * warm. A file that looks at its process gets a separate one.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { WORKERS_VARIABLE } from './test-workers.ts'

/** Patterns in the text of a test that looks at its process, or changes it for other files. */
const OWN_PROCESS: readonly RegExp[] = [
  /memoryUsage|heapUsed|HeapStatistics|expose-gc|cpuUsage|getActiveResourcesInfo|\/proc\/self/,
  /TurnProbe|monitorEventLoopDelay|eventLoopUtilization/,
  /process\.(emit|on|once|exit|chdir|umask)\(|process\.env\[|uncaughtException|diagnostics_channel|setFlagsFromString/,
  /mock\.method\((JSON|Buffer|performance)/,
  // A comment in the file says so, where nothing else shows it.
  /a process of its own/,
]

/** How many files of a folder share a process; files of other folders do not share. */
const SHARED: readonly [folder: string, files: number][] = [
  ['src/', 24],
  ['bench/', 24],
  ['test/chaos/', 8],
  ['test/conformance/', 4],
  ['test/e2e/', 6],
  ['test/interop/agents/', 4],
  ['test/interop/api-client/', 5],
  ['test/interop/oidc/', 4],
  ['test/interop/openapi/', 2],
  ['test/interop/ssh/', 5],
  ['test/support/', 8],
]

/** The longest files, longest first: they start first, so that the run does not end with one of them. */
const LONGEST = [
  'test/e2e/start-stop.test.ts',
  'test/e2e/certificate-orders.test.ts',
  'test/conformance/matrix.test.ts',
  'test/e2e/backup.test.ts',
  'test/conformance/paging.test.ts',
  'test/interop/package/package.test.ts',
  'test/conformance/resources.test.ts',
  'test/crash/crash.test.ts',
  'test/e2e/agent-faults.test.ts',
  'test/conformance/fields.test.ts',
]

export type TextOf = (file: string) => string

/** Returns the groups in the order in which they are to be run. */
export function groupTests(
  files: readonly string[],
  textOf: TextOf = (file) => readFileSync(file, 'utf8'),
): string[][] {
  const first = LONGEST.filter((file) => files.includes(file))
  const alone: string[] = []
  const open = new Map<number, string[]>(SHARED.map((_, index) => [index, []]))
  const groups: string[][] = []
  for (const file of files.filter((each) => !first.includes(each))) {
    const index = SHARED.findIndex(([folder]) => file.startsWith(folder))
    const group = open.get(index)
    if (!group || OWN_PROCESS.some((pattern) => pattern.test(textOf(file)))) {
      alone.push(file)
      continue
    }
    group.push(file)
    if (group.length < (SHARED[index]?.[1] ?? 1)) continue
    groups.push(group)
    open.set(index, [])
  }
  groups.push(...[...open.values()].filter((group) => group.length > 0))
  const others = [...groups, ...alone.map((file) => [file])].toSorted(byFolder)
  return [...first.map((file) => [file]), ...others]
}

/** Tests of whole servers take longer than those of parts, which fill the end well. */
function byFolder([a = '']: string[], [b = '']: string[]): number {
  return Number(b.startsWith('test/')) - Number(a.startsWith('test/'))
}

export interface TestGroup {
  readonly files: readonly string[]
  /** How many workers the servers of these tests have, if different from the others. */
  readonly workers?: string
}

/** Writes a file for each group that runs its members; node runs files in the order of their names. */
export function writeGroups(groups: readonly TestGroup[], folder: string): string[] {
  const share = new URL('share-process.ts', import.meta.url).href
  return groups.map(({ files, workers }, index) => {
    const name = `${String(index).padStart(3, '0')}-${(files[0] ?? '').replaceAll('/', '-').replace(/\.ts$/, '.mjs')}`
    const path = join(folder, name)
    const members = JSON.stringify(files.map((file) => resolve(file)))
    const settings = workers === undefined ? '' : `process.env.${WORKERS_VARIABLE} = '${workers}'\n`
    const note = workers === undefined ? '' : `, ' with ${workers} workers'`
    writeFileSync(path, `import { shareProcess } from '${share}'\n${settings}shareProcess(${members}${note})\n`)
    return path
  })
}

export function isGroup(path: string): boolean {
  return path.endsWith('.test.mjs')
}

/** The members of a group, by the file that runs them; a file that is not a group has none. */
export function membersOf(path: string): string[] {
  if (!isGroup(path)) return []
  const [list = '[]'] = /\[.*\]/.exec(readFileSync(path, 'utf8')) ?? []
  return JSON.parse(list)
}
