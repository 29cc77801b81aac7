/** Connections to a server of several processes, each at a certain worker: the system tells which process has accepted it. */
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import type { Socket } from 'node:net'
import { connect } from 'node:tls'
import { childrenOf, connectionsOf } from '../chaos/children.ts'
import type { ServerProcess } from './server-process.ts'
import { trustedContext } from './trusted-context.ts'
import { until } from './until.ts'
import { type Answered, answerOf, dialTcp } from './visitor.ts'

/** Connections that are opened at a time, for each that is still missing at some worker. */
const SPARE = 3

/** How long a handshake may take, in milliseconds. */
const LATE_MS = 30_000

/** Opens `each` connections to every worker, on which nothing is sent yet; by worker. */
export async function socketsAtEach(
  server: Pick<ServerProcess, 'child'>,
  address: string,
  { workers, each = 1 }: { readonly workers: number; readonly each?: number },
): Promise<readonly (readonly Socket[])[]> {
  const all = await until('all workers run', () => childrenOf(server.child.pid ?? 0, workers))
  const found = all.workers.map(() => [] as Socket[])
  for (;;) {
    const missing = found.reduce((sum, some) => sum + Math.max(0, each - some.length), 0)
    if (missing === 0) break
    const opened = await Promise.all(Array.from({ length: missing * SPARE }, () => dialTcp(`tcp://${address}`)))
    const byPort = new Map(opened.map((socket) => [socket.localPort, socket]))
    await until('all are accepted', () => {
      for (const [worker, pid] of all.workers.entries()) {
        for (const { farPort } of connectionsOf(pid)) {
          const socket = byPort.get(farPort)
          if (socket) found[worker]?.push(socket)
          byPort.delete(farPort)
        }
      }
      return byPort.size === 0
    })
  }
  for (const some of found) for (const spare of some.splice(each)) spare.destroy()
  return found
}

/** A visitor of one worker: it makes its requests over one connection. */
export interface WorkerVisitor {
  ask(path?: string): Promise<Answered>
  close(): void
}

/** Does the handshake on a connection that was opened before, and resolves with a visitor of `https://name`. */
export async function visitorOver(socket: Socket, name: string, ca: string): Promise<WorkerVisitor> {
  const secure = connect({ socket, servername: name, secureContext: trustedContext(ca) })
  const signal = AbortSignal.timeout(LATE_MS)
  try {
    // The server may have closed it while nothing was sent.
    await Promise.race([once(secure, 'secureConnect', { signal }), once(secure, 'close', { signal }).then(gone)])
  } catch (error) {
    secure.destroy()
    throw error
  }
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  agent.createConnection = () => secure
  return {
    ask: (path = '/') => answerOf(request({ agent, path, headers: { host: name } }).end()),
    close: () => secure.destroy(),
  }
}

function gone(): never {
  throw new Error('the connection was closed before its handshake')
}
