/** A worker as a child of the supervisor: what it is given, and what it reports. */

import type { Descriptors } from '../../lib/files/descriptors.ts'
import type { Logger } from '../../lib/log/create-log.ts'
import type { ListenOn } from '../../lib/net/listen-on.ts'
import type { Settings } from '../config/read-settings.ts'
import type { WorkerPorts } from './child-sockets.ts'
import type { ToChild, WorkerAddresses } from './process-messages.ts'
import { type ChildParts, type RunningChild, runSupervised } from './supervised.ts'

export interface WorkerGiven {
  readonly log: Logger
  readonly descriptors: Descriptors
  /** Unique for the life of the server. */
  readonly id: string
  /** Its slot among `slots`, from 0. */
  readonly slot: number
  readonly slots: number
  /** The node of all workers and the control process. */
  readonly nodeId: string
  /** A folder private to this server, with the Unix sockets of its workers. */
  readonly folder: string
  /** The secret from which TLS ticket keys derive. */
  readonly ticketSecret: Buffer
  /** Ports of TCP edges that a service manager handed in. */
  readonly handedPorts: readonly number[]
  readonly listeners: Readonly<Record<'agent' | 'ssh' | 'https' | 'http', ListenOn>> & {
    readonly cluster: ListenOn | undefined
  }
  readonly tcpPorts: WorkerPorts
  /** The Unix socket of the control process. */
  readonly controlPath: string
}

export interface StartedWorker extends RunningChild {
  readonly addresses: WorkerAddresses
  /** Finishes what is open within the drain time. */
  drain(): Promise<void>
  /** A new control process listens at this path. */
  controlAt(path: string): void
}

export type StartWorker = (settings: Settings, given: WorkerGiven) => Promise<StartedWorker>

/** `load` loads the code, which takes long; connections wait meanwhile. */
export function runWorker(load: () => Promise<StartWorker>, parts: ChildParts): void {
  runSupervised(parts, ({ start, settings, log, descriptors, sockets, send }) => {
    const control = Promise.withResolvers<void>()
    const moved = Promise.withResolvers<never>()
    moved.promise.catch(() => {})
    let controlPath = ''
    let isBeginning = false
    let running: StartedWorker | undefined
    const loading = load()
    // A failure is reported to those that await it.
    loading.catch(() => {})
    return {
      load: () => loading,
      async run() {
        const [begin] = await Promise.all([loading, control.promise])
        isBeginning = true
        const { id, slot, slots, folder, handedPorts } = start
        const { nodeId } = start.node
        const { clusterListen } = settings
        const ticketSecret = Buffer.from(start.ticketSecret)
        const beginning = begin(settings, {
          ...{ log, descriptors, id, slot, slots, nodeId, folder, ticketSecret, handedPorts, controlPath },
          tcpPorts: sockets,
          listeners: {
            agent: sockets.listener('agent', settings.agentListen),
            ssh: sockets.listener('ssh', settings.sshListen),
            https: sockets.listener('https', settings.httpsListen),
            http: sockets.listener('http', settings.httpListen),
            cluster: clusterListen ? sockets.listener('cluster', clusterListen) : undefined,
          },
        })
        // A worker that began with a control process that is gone is replaced by one that starts again.
        const started = await Promise.race([beginning, moved.promise])
        running = started
        return {
          running: started,
          announce: () => send({ type: 'ready', role: 'worker', addresses: started.addresses }),
        }
      },
      receive(message: ToChild) {
        if (message.type !== 'control') return
        if (running) running.controlAt(message.path)
        else if (isBeginning) moved.reject(new Error('the control process ended meanwhile'))
        else controlPath = message.path
        control.resolve()
      },
    }
  })
}
