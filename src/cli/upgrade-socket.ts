/** The socket over which `postern upgrade` requests an upgrade of the running server. */

import { once } from 'node:events'
import { unlinkSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Logger } from '../lib/log/create-log.ts'
import type { UpgradeStep } from '../server/supervisor/upgrade-server.ts'
import type { UpgradeOutcome } from './live-changes.ts'

/** All that the command sends, as one line. It gets one line of JSON for each step, and one for the outcome. */
const ORDER = 'upgrade'

/** How long an order may be, in characters, and how long it may take to come, in milliseconds. */
const MAX_ORDER_CHARS = 100
const ORDER_MS = 5000

/** How many commands may wait for the outcome of an upgrade. */
const MAX_WAITING = 16

type UpgradeMessage = { readonly type: 'step'; readonly step: UpgradeStep } | UpgradeOutcome

/** No server is listening at the socket. */
export class NoServer extends Error {
  override readonly name = 'NoServer'
}

/**
 * In the data folder, which command and server both know. A service sees it under the same path, even with a folder of its
 * own for temporary files.
 */
export function upgradeSocketPath(dataDir: string): string {
  return join(dataDir, 'upgrade.sock')
}

export interface OrdersOptions {
  readonly dataDir: string
  readonly upgrade: (onStep: (step: UpgradeStep) => void) => Promise<UpgradeOutcome>
  readonly log: Logger
}

/** Takes orders from now on; returns a function that stops it. Without the socket the server still works. */
export async function takeOrders({ dataDir, upgrade, log }: OrdersOptions): Promise<() => void> {
  const path = upgradeSocketPath(dataDir)
  const server = createServer((socket) => serveOrder(socket, upgrade))
  server.maxConnections = MAX_WAITING
  try {
    await listenAlone(server, path)
    server.on('error', () => {}) // such as too many open files: the next order may succeed
  } catch (err) {
    log.warn({ err, path }, '`postern upgrade` cannot reach this server; send SIGUSR2 instead')
  }
  return () => void server.close()
}

/** Requests an upgrade and resolves with its outcome; rejects with `NoServer`, or when the server ends meanwhile. */
export async function orderUpgrade(dataDir: string, onStep: (step: UpgradeStep) => void): Promise<UpgradeOutcome> {
  const path = upgradeSocketPath(dataDir)
  const socket = await reach(path).catch((cause: NodeJS.ErrnoException) => {
    const isNobody = cause.code === 'ENOENT' || cause.code === 'ECONNREFUSED'
    throw isNobody ? new NoServer(`no server is listening at ${path}`, { cause }) : cause
  })
  socket.write(`${ORDER}\n`)
  try {
    for await (const line of createInterface({ input: socket })) {
      const message = JSON.parse(line) as UpgradeMessage // from our own server: nobody else can write to that folder
      if (message.type !== 'step') return message
      onStep(message.step)
    }
    throw new Error('it closed the connection')
  } catch (cause) {
    throw new Error('the server ended before the upgrade was done; see its log', { cause })
  } finally {
    socket.destroy()
  }
}

function serveOrder(socket: Socket, upgrade: OrdersOptions['upgrade']): void {
  let text = ''
  const overdue = setTimeout(() => socket.destroy(), ORDER_MS)
  const tell = (message: UpgradeMessage): void => void (socket.writable && socket.write(`${JSON.stringify(message)}\n`))
  socket.on('error', () => {}) // the command is gone; the upgrade goes on
  socket.on('close', () => clearTimeout(overdue))
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    if (text.endsWith('\n')) return
    text += chunk
    if (text.length > MAX_ORDER_CHARS) socket.destroy()
    if (!text.endsWith('\n')) return
    clearTimeout(overdue)
    void answer(text.trim(), upgrade, tell).then(() => socket.end())
  })
}

async function answer(
  order: string,
  upgrade: OrdersOptions['upgrade'],
  tell: (message: UpgradeMessage) => void,
): Promise<void> {
  if (order !== ORDER) tell({ type: 'failed', reason: 'this server does not know that order' })
  else tell(await upgrade((step) => tell({ type: 'step', step })))
}

/** Only this user may connect. Removes the socket file of a server that was killed. */
async function listenAlone(server: Server, path: string): Promise<void> {
  try {
    await listen(server, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || (await isServed(path))) throw error
    unlinkSync(path)
    await listen(server, path)
  }
}

async function listen(server: Server, path: string): Promise<void> {
  // The socket is created within the call, with the permissions that the umask leaves.
  const umask = process.umask(0o177)
  try {
    server.listen(path)
  } finally {
    process.umask(umask)
  }
  await once(server, 'listening')
}

async function isServed(path: string): Promise<boolean> {
  return reach(path).then(
    (socket) => {
      socket.destroy()
      return true
    },
    () => false,
  )
}

async function reach(path: string): Promise<Socket> {
  const socket = connect(path)
  await once(socket, 'connect')
  return socket
}
