/**
 * A program that sends requests on kept-alive TLS connections, one at a time on each, all accepted by a given process:
 * the system spreads connections over workers as it likes, so those of others are closed and reopened. Prints how many
 * answers there were and how long they took, as JSON.
 *
 * Arguments: seconds, connections, port, path, file of the CA, the name to visit, and the process.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect as connectPlain, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { connect, createSecureContext, type TLSSocket } from 'node:tls'
import { acceptedBy } from './held-connections.ts'

/** How long connections may take to be accepted, in milliseconds. */
const ACCEPT_MS = 50

/** How often connections may be reopened. */
const TRIES = 20

const [seconds = '', connections = '', port = '', path = '', caFile = '', name = '', pid = ''] = process.argv.slice(2)
const secureContext = createSecureContext({ ca: readFileSync(caFile) })
const OK = Buffer.from('HTTP/1.1 200 ')
const request = Buffer.from(`GET ${path} HTTP/1.1\r\nHost: ${name}\r\n\r\n`)

const sockets = await Promise.all((await chosen(Number(connections))).map(secure))
const begun = performance.now()
const until = begun + Number(seconds) * 1000
const counts = await Promise.all(sockets.map(visit))
const amount = counts.reduce((sum, each) => sum + each, 0)
console.log(JSON.stringify({ amount, seconds: (performance.now() - begun) / 1000 }))
process.exit(0)

/** Opens connections until the process has accepted enough. */
async function chosen(count: number): Promise<Socket[]> {
  const found: Socket[] = []
  for (let i = 0; i < TRIES && found.length < count; i++) {
    const opened = Array.from({ length: count }, () => connectPlain({ host: '127.0.0.1', port: Number(port) }))
    await Promise.all(opened.map((socket) => once(socket, 'connect')))
    await pause(ACCEPT_MS)
    const accepted = acceptedBy(Number(pid), Number(port))
    for (const socket of opened) {
      if (accepted.has(socket.localPort ?? 0) && found.length < count) found.push(socket)
      else socket.destroy()
    }
  }
  if (found.length < count) throw new Error(`process ${pid} accepts too few connections`)
  return found
}

async function secure(below: Socket): Promise<TLSSocket> {
  const socket = connect({ socket: below, servername: name, secureContext })
  await once(socket, 'secureConnect')
  return socket
}

/** Sends one request after the other; resolves with how many were answered. All answers are as long as the first. */
function visit(socket: TLSSocket): Promise<number> {
  return new Promise((resolve, reject) => {
    let answers = 0
    let length = 0
    let arrived = 0
    const refuse = (bytes: Buffer): void =>
      reject(new Error(`${name} answered ${JSON.stringify(bytes.toString('latin1').slice(0, 100))}`))
    socket.on('data', (bytes: Buffer) => {
      if (arrived === 0 && !bytes.subarray(0, OK.length).equals(OK)) return refuse(bytes)
      length ||= lengthOf(bytes)
      arrived += bytes.length
      if (arrived < length) return
      if (arrived > length) return refuse(bytes)
      arrived = 0
      answers++
      if (performance.now() < until) socket.write(request)
      else resolve(answers)
    })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error(`${name} closed a connection`)))
    socket.write(request)
  })
}

/** The length of the answer whose head is at the start of `bytes`. */
function lengthOf(bytes: Buffer): number {
  const text = bytes.toString('latin1')
  const head = text.indexOf('\r\n\r\n') + 4
  return head + Number(/^content-length: *(\d+)\r$/im.exec(text.slice(0, head))?.[1] ?? 0)
}
