/** The verbs that only exchanges have: replay, export to other tools, and a live stream. */
import type { Command } from 'commander'
import type { TObject } from 'typebox'
import { printable } from '../../lib/text/printable.ts'
import { Failure } from '../command-failure.ts'
import type { Terminal } from '../terminal.ts'
import { cell, printJson } from '../text-table.ts'
import type { ApiAnswer, Call, Follow } from './api-client.ts'
import { bodyOf, type FieldFlag, fieldFlags } from './flags.ts'
import { columnsOf, queryOf, rowOf } from './list.ts'

/** The input of each verb. */
interface ExchangeJob {
  readonly call: Call
  readonly follow: Follow
  readonly options: Readonly<Record<string, unknown>>
  readonly path: string
  /** The id from the command line, checked. */
  readonly id: () => string
}

interface ExchangeVerbs {
  readonly terminal: Terminal
  readonly view: TObject
  readonly columns: readonly string[] | undefined
  readonly replay: TObject
  readonly filters: readonly FieldFlag[]
  readonly show: (answer: ApiAnswer | null, job: ExchangeJob) => void
  readonly add: (verb: string, about: string, run: (job: ExchangeJob) => Promise<void>) => Command
  readonly addBodyFlags: (leaf: Command, flags: readonly FieldFlag[]) => void
}

/** How long a slow reader has for the last lines, in milliseconds. */
const LAST_LINES_MS = 2000

const ID = ['<id>', 'id of the exchange'] as const

export function addExchangeVerbs({ add, addBodyFlags, ...given }: ExchangeVerbs): void {
  const { terminal, show, filters } = given
  const changes = fieldFlags(given.replay)
  const replay = add('replay', 'send the request of one exchange again, unchanged or edited', async (job) => {
    const body = await bodyOf(changes, job.options, terminal)
    show(await job.call('POST', `${job.path}/${job.id()}/replay`, body), job)
  }).argument(...ID)
  addBodyFlags(replay, changes)
  add('har', 'show one exchange as a HAR document', async ({ call, path, id }) => {
    printJson(terminal, await call('GET', `${path}/${id()}/har`))
  }).argument(...ID)
  add('curl', 'show the request of one exchange as a curl command', async ({ call, path, id, options }) => {
    const answer = await call('GET', `${path}/${id()}/curl`)
    if (options.json) printJson(terminal, answer)
    else terminal.out(`${String(answer?.command)}\n`)
  }).argument(...ID)
  const stream = add('stream', 'show exchanges as they come, one per line', (job) => printStream(job, given))
  for (const { option } of filters) stream.addOption(option)
}

async function printStream(
  { follow, path, options }: ExchangeJob,
  { terminal, filters, view, columns }: Pick<ExchangeVerbs, 'terminal' | 'filters' | 'view' | 'columns'>,
): Promise<void> {
  const shown = columnsOf(view, columns)
  const lines = terminal.openLines((lost) => `${lost} lines were dropped: the reader is too slow\n`)
  for await (const { name, data } of follow(`${path}/stream${queryOf(filters, options)}`)) {
    if (name === 'missed')
      terminal.err(`some exchanges were skipped because too many came at once: ${printable(data)}\n`)
    if (name !== 'exchange') continue
    lines.write(options.json ? `${data}\n` : lineOf(data, shown))
  }
  await lines.flush(LAST_LINES_MS)
  throw new Failure('the server ended the stream; it may be stopping, or the API key was deleted')
}

function lineOf(data: string, shown: readonly string[]): string {
  // Our own server wrote it.
  const row = rowOf(JSON.parse(data) as ApiAnswer, shown)
  return `${Object.values(row).map(cell).join('\t')}\n`
}
