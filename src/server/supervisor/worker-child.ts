/** A worker as a child of the supervisor: what it is given, and what it reports. */

import type { Descriptors } from '../../lib/files/descriptors.ts'
import type { Logger } from '../../lib/log/create-log.ts'
import type { Listeners } from '../config/listeners.ts'
import type { Settings } from '../config/read-settings.ts'
import type { WorkerPorts } from './child-sockets.ts'
import type { StartMessage, WorkerAddresses } from './process-messages.ts'
import { type ChildParts, type RunningChild, runSupervised } from './supervised.ts'

export interface WorkerGiven extends Pick<StartMessage, 'id' | 'slot' | 'slots' | 'folder' | 'handedPorts'> {
  readonly log: Logger
  readonly descriptors: Descriptors
  /** The node of all workers and the control process. */
  readonly nodeId: string
  /** The secret from which TLS ticket keys derive. */
  readonly ticketSecret: Buffer
  readonly listeners: Pick<Listeners, 'agent' | 'ssh' | 'https' | 'http' | 'cluster'>
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

export function runWorker(load: () => Promise<StartWorker>, parts: ChildParts): void {
  runSupervised<StartWorker, StartedWorker>(parts, ({ start, settings, log, descriptors, sockets }) => {
    const control = Promise.withResolvers<void>()
    const moved = Promise.withResolvers<never>()
    moved.promise.catch(() => {})
    let controlPath = ''
    let isBeginning = false
    let running: StartedWorker | undefined
    return {
      load,
      async run(begin) {
        await control.promise
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
        running = await Promise.race([beginning, moved.promise])
        return running
      },
      ready: ({ addresses }) => ({ type: 'ready', role: 'worker', addresses }),
      receive(message) {
        if (message.type !== 'control') return
        if (running) running.controlAt(message.path)
        else if (isBeginning) moved.reject(new Error('the control process ended meanwhile'))
        else controlPath = message.path
        control.resolve()
      },
    }
  })
}
