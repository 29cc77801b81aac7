/** The control process as a child of the supervisor: what it is given, and what it reports. */

import type { Descriptors } from '../../lib/files/descriptors.ts'
import type { Logger } from '../../lib/log/create-log.ts'
import type { Listeners } from '../config/listeners.ts'
import type { OwnNode } from '../config/own-node.ts'
import type { Settings } from '../config/read-settings.ts'
import type { ControlAddresses, FirstCredentials, SupervisorFigures, WorkerAddresses } from './process-messages.ts'
import { type ChildParts, type RunningChild, runSupervised } from './supervised.ts'

export interface ControlGiven {
  readonly log: Logger
  readonly listeners: Pick<Listeners, 'api' | 'metrics'>
  readonly descriptors: Descriptors
  /** The node, which stays the same when this process is replaced. */
  readonly node: OwnNode
  /** The Unix socket to open for workers. */
  readonly linkPath: string
  /** Children that were replaced, by role. */
  readonly restarts: () => SupervisorFigures['restarts']
  /** Log lines of all processes that could not be written. */
  readonly lostLines: () => number
  /** Call this when the link path is open: workers attach from then on. */
  readonly onListening: () => void
  /** Resolves when every worker has been ready once; the API and the output of the first start wait for it. */
  readonly workersReady: Promise<WorkerAddresses>
}

export interface StartedControl extends RunningChild {
  readonly addresses: ControlAddresses
  readonly sshHostKey: string
  readonly firstStart: FirstCredentials | null
  /** The server is stopping: it is no longer ready, but serves for a while. */
  stopping(): void
  /** The workers drain. */
  draining(): void
  pause(): Promise<void>
}

export type StartControl = (settings: Settings, given: ControlGiven) => Promise<StartedControl>

export function runControl(load: () => Promise<StartControl>, parts: ChildParts): void {
  runSupervised<StartControl, StartedControl>(parts, ({ start, settings, log, descriptors, sockets, send }) => {
    const workers = Promise.withResolvers<WorkerAddresses>()
    let figures: SupervisorFigures = { restarts: { control: 0, worker: 0 }, lostLines: 0 }
    let running: StartedControl | undefined
    return {
      load,
      async run(begin) {
        running = await begin(settings, {
          ...{ log, descriptors, linkPath: start.linkPath, node: start.node },
          listeners: {
            api: sockets.listener('api', settings.apiListen),
            metrics: sockets.listener('metrics', settings.metricsListen),
          },
          restarts: () => figures.restarts,
          lostLines: () => figures.lostLines,
          onListening: () => send({ type: 'listening' }),
          workersReady: workers.promise,
        })
        return running
      },
      ready: ({ addresses, sshHostKey, firstStart }) => ({
        type: 'ready',
        role: 'control',
        addresses,
        sshHostKey,
        firstStart,
      }),
      receive(message) {
        if (message.type === 'workers') workers.resolve(message.addresses)
        else if (message.type === 'figures') figures = message.figures
        else if (message.type === 'stopping') running?.stopping()
        else if (message.type === 'draining') running?.draining()
      },
    }
  })
}
