/** Loaded into each process of tests: tells the run, line by line, what becomes of them, and what each file costs. */
/* oxlint-disable require-yield -- node takes a reporter as a generator, and would print what this one yields. */
import { EventEmitter } from 'node:events'
import { writeSync } from 'node:fs'
import { relative } from 'node:path'
import type { EventData } from 'node:test'
import type { TestEvent } from 'node:test/reporters'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { countCosts, type Spent } from './costs.ts'

/** One line; it has one of these. */
export interface Report {
  /** The file whose turn it is now, of several that share the process. */
  readonly began?: string
  readonly failure?: Failure
  /** Something that a test says of itself. */
  readonly note?: string
  /** What the file that ended has cost. */
  readonly ended?: Spent
  /** The last line of a process that came to its end. */
  readonly counts?: Counts
}

export interface Failure {
  /** The names of its suites and its own. */
  readonly names: readonly string[]
  /** The name by which node runs it again; null when the whole file is at fault. */
  readonly fullName: string | null
  readonly place: string
  readonly ms: number
  readonly error: string
}

export interface Counts {
  readonly tests: number
  readonly passed: number
  readonly skipped: number
}

/** The file descriptor that the run reads. */
const REPORTS = 3

/** Says, to the file that shares the process among others, that one of them has ended, with its hooks. */
export const fileEnds = new EventEmitter<{ ended: [] }>()

type Known = Pick<EventData.TestEnqueue, 'name' | 'type' | 'parentId'>

// biome-ignore lint/style/noDefaultExport: node takes a reporter by its default export.
// biome-ignore lint/correctness/useYield: the same.
export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<never> {
  const isShared = process.argv[1] === fileURLToPath(new URL('share-process.ts', import.meta.url))
  const spent = countCosts()
  const known = new Map<number, Known>()
  for await (const { type, data } of events) {
    if (type === 'test:enqueue') known.set(data.testId, data)
    if (type === 'test:diagnostic' && data.nesting > 0) tell({ note: data.message })
    if (type === 'test:fail' && !isOnlyOfSubtests(data)) tell({ failure: describe(data, known, isShared) })
    if ((type === 'test:pass' || type === 'test:fail') && isShared && data.nesting === 0) {
      tell({ ended: spent() })
      fileEnds.emit('ended')
    }
    if (type === 'test:summary') {
      if (!isShared) tell({ ended: spent() })
      const { tests, passed, skipped } = data.counts
      tell({ counts: { tests, passed, skipped } })
    }
  }
}

/** Stands around the name of a file in what the process prints: what follows is printed by that file. */
export const SPEAKER = '\0'

export function speaks(file: string): string {
  return `${SPEAKER}${file}${SPEAKER}`
}

export function tell(report: Report): void {
  writeSync(REPORTS, `${JSON.stringify(report)}\n`)
}

function isOnlyOfSubtests({ details, todo }: EventData.TestFail): boolean {
  const { error } = details
  return todo !== undefined || ('failureType' in error && error.failureType === 'subtestsFailed')
}

function describe(data: EventData.TestFail, known: ReadonlyMap<number, Known>, isShared: boolean): Failure {
  const chain: Known[] = []
  for (let each = known.get(data.testId); each; each = known.get(each.parentId ?? 0)) chain.unshift(each)
  if (isShared) chain.shift()
  const names = chain.map(({ name }) => name)
  // What a test runs inside itself cannot be run without it.
  const whole = chain.findIndex(({ type }) => type === 'test')
  return {
    names,
    fullName: names.length === 0 ? null : names.slice(0, whole + 1 || undefined).join(' '),
    place: `${relative('.', data.file ?? '')}:${data.line}:${data.column}`,
    ms: data.details.duration_ms,
    error: inspect(data.details.error.cause ?? data.details.error, { colors: process.env.FORCE_COLOR === '1' }),
  }
}
