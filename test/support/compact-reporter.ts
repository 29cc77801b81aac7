/** Reports a test run in few lines: a dot per file, failures in full with their output, counts, and the slowest files. */
import { relative, resolve } from 'node:path'
import { spec, type TestEvent } from 'node:test/reporters'
import { fileURLToPath } from 'node:url'
import { isGroup, membersOf } from './group-tests.ts'

/** How many of the slowest files are named at the end. */
const SLOWEST = 10

/** The file in which the suites begin that are files of a group. */
const SHARE = fileURLToPath(new URL('share-process.ts', import.meta.url))

/** Events about passing tests and their order, which are not shown. */
const DROPPED = new Set(['test:enqueue', 'test:dequeue', 'test:start', 'test:pass', 'test:complete', 'test:plan'])

// biome-ignore lint/style/noDefaultExport: node takes a reporter by its default export.
export default async function* compact(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const shown = new spec()
  // Synchronous: when the run is interrupted, node does not wait for pending work.
  const show = (event: TestEvent): string => {
    shown.write(event)
    return String(shown.read() ?? '')
  }
  const printed = new Map<string, TestEvent[]>()
  const groups = new Map<string, string>()
  const files: { readonly name: string; readonly ms: number }[] = []
  let dots = false
  for await (const event of events) {
    if (event.type === 'test:complete' && isWholeFile(event.data)) {
      dots = true
      files.push({ name: relative('.', event.data.name), ms: event.data.details.duration_ms })
      yield '.'
    }
    if (event.type === 'test:stdout' || event.type === 'test:stderr') {
      const file = resolve(event.data.file)
      if (!printed.has(file)) for (const member of membersOf(file)) groups.set(member, file)
      printed.set(file, [...(printed.get(file) ?? []), event])
    } else if (!DROPPED.has(event.type)) {
      const own = event.type === 'test:fail' && event.data.file ? resolve(event.data.file) : ''
      const file = groups.get(own) ?? own
      const text = [...(printed.get(file) ?? []), event].map(show).join('')
      printed.delete(file)
      if (text === '') continue
      yield dots ? `\n${text}` : text
      dots = false
    }
  }
  if (files.length > SLOWEST) yield `${slowest(files)}\n`
}

function slowest(files: readonly { readonly name: string; readonly ms: number }[]): string {
  const first = files.toSorted((a, b) => b.ms - a.ms).slice(0, SLOWEST)
  return `# longest: ${first.map(({ name, ms }) => `${name} ${(ms / 1000).toFixed(0)} s`).join(', ')}`
}

function isWholeFile({ nesting, name, file }: { nesting: number; name: string; file?: string | undefined }): boolean {
  return nesting === 0 && file !== undefined && (file === SHARE || (resolve(name) === file && !isGroup(file)))
}
