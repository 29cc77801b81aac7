/**
 * A program that opens new connections to edges, each with a full TLS handshake, one request and its answer; wrk would
 * resume TLS sessions. Prints their number and how long they took, as JSON.
 *
 * Arguments: seconds, how many at a time, port, path, key exchange groups, file of the CA, and the names to visit in turn.
 */
import { readFileSync } from 'node:fs'
import { connect, createSecureContext } from 'node:tls'

/** How long one visit may take, in milliseconds. */
const VISIT_MS = 5000

const [seconds = '', atATime = '', port = '', path = '', groups = '', caFile = '', ...names] = process.argv.slice(2)
// No session is passed on, so every handshake is a full one.
const secureContext = createSecureContext({ ca: readFileSync(caFile), ecdhCurve: groups })

const begun = performance.now()
const until = begun + Number(seconds) * 1000
let visits = 0
await Promise.all(
  Array.from({ length: Number(atATime) }, async () => {
    while (performance.now() < until) await visit(names[visits++ % names.length] ?? '')
  }),
)
console.log(JSON.stringify({ amount: visits, seconds: (performance.now() - begun) / 1000 }))

function visit(name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: Number(port), servername: name, secureContext })
    let answer = ''
    socket.setEncoding('latin1').setTimeout(VISIT_MS, () => socket.destroy(new Error(`${name} took too long`)))
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`)
    socket.on('data', (text: string) => {
      answer += text
    })
    socket.on('error', reject)
    socket.on('close', () => {
      if (answer.startsWith('HTTP/1.1 200 ')) resolve()
      else reject(new Error(`${name} answered ${JSON.stringify(answer.slice(0, 100))}`))
    })
  })
}
