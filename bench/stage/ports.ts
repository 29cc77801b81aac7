/** Ports on loopback: finding free ones, and waiting until a program listens. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { portsToKeep } from '../../test/support/free-port.ts'

export const LOOPBACK = '127.0.0.1'

const RETRY_MS = 20

/** The first of `count` consecutive free ports, reserved while this process runs. */
export async function freePorts(count: number): Promise<number> {
  const [first] = await portsToKeep(count)
  return first
}

export function freePort(): Promise<number> {
  return freePorts(1)
}

export interface Patience {
  readonly timeoutMs: number
  /** Whether trying again is pointless, however much time is left. */
  readonly isLost?: () => boolean
}

/** Tries until it works or the time is up, and then fails with the error of the last try. */
export async function retry<T>(work: () => Promise<T>, { timeoutMs, isLost = () => false }: Patience): Promise<T> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (isLost() || performance.now() > deadline) throw error
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
}

/** Connects to a port and closes the connection; rejects if no program listens. */
export async function touch(port: number): Promise<void> {
  const socket = connect(port, LOOPBACK)
  try {
    await once(socket, 'connect')
  } finally {
    socket.destroy()
  }
}
