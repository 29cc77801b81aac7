/** Runs visitors in a separate process, so that nothing else delays them: commands go in, and reports come out. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Owner } from '../support/upstream.ts'
import { Visitors, type VisitorsOptions, type VisitorsReport } from './visitors.ts'

type Command = { readonly type: 'start'; readonly options: VisitorsOptions } | { readonly type: 'report' | 'stop' }

type Answer =
  | { readonly type: 'done'; readonly count: number }
  | { readonly type: 'report'; readonly report: VisitorsReport }

/** How often the process reports its progress, in milliseconds. */
const PROGRESS_MS = 200

export interface VisitorsProcess {
  readonly pid: number
  /** Answered requests since the last report. */
  readonly done: number
  /** What happened since the last report. */
  report(): Promise<VisitorsReport>
  /** Ends the process; returns its last report. */
  stop(): Promise<VisitorsReport>
}

export function startVisitors(owner: Owner, options: VisitorsOptions): VisitorsProcess {
  const child = fork(fileURLToPath(import.meta.url), { serialization: 'advanced' })
  owner.after(() => child.kill('SIGKILL'))
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the process of the visitors ended with ${code}`)
  })
  ended.catch(() => {})
  let done = 0
  let reported: ((report: VisitorsReport) => void) | undefined
  // Both ends are in this file.
  child.on('message', (received) => {
    const answer = received as Answer
    if (answer.type === 'done') done = answer.count
    else reported?.(answer.report)
  })
  const send = (command: Command): void => void child.send(command)
  const ask = (type: 'report' | 'stop'): Promise<VisitorsReport> => {
    const report = new Promise<VisitorsReport>((resolve) => (reported = resolve))
    send({ type })
    return Promise.race([report, ended])
  }
  send({ type: 'start', options })
  return {
    pid: child.pid ?? 0,
    get done() {
      return done
    },
    report: () => ask('report'),
    async stop() {
      const report = await ask('stop')
      child.disconnect()
      return report
    },
  }
}

function run(): void {
  let visitors: Visitors | undefined
  const send = (answer: Answer): void => void process.send?.(answer)
  process.on('disconnect', () => process.exit())
  const obey = async (command: Command): Promise<void> => {
    if (command.type === 'start') {
      const started = new Visitors(command.options)
      visitors = started
      started.start()
      setInterval(() => send({ type: 'done', count: started.done }), PROGRESS_MS)
      return
    }
    if (command.type === 'stop') await visitors?.stop()
    if (visitors) send({ type: 'report', report: visitors.report() })
  }
  process.on('message', (received) => void obey(received as Command))
}

if (import.meta.main) run()
