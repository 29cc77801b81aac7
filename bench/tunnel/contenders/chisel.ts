/** chisel: a reverse tunnel over a WebSocket, encrypted by its own SSH. */
import { freePort, LOOPBACK } from '../../stage/ports.ts'
import type { Contender } from './contender.ts'

const AUTH = 'bench:bench_token'

export const chisel: Contender = {
  name: 'chisel',
  link: 'L4 TLS',
  needs: ['chisel'],
  version: ['chisel', '--version'],
  async start(upstreamPort, { stage, path }) {
    const [serverPort, port] = [await freePort(), await freePort()]
    const server = ['server', '--host', LOOPBACK, '--port', String(serverPort), '--reverse', '--auth', AUTH]
    await stage.programs.start(path('chisel'), server).listens(serverPort)
    const remote = `R:${LOOPBACK}:${port}:${LOOPBACK}:${upstreamPort}`
    await stage.programs
      .start(path('chisel'), ['client', '--auth', AUTH, `http://${LOOPBACK}:${serverPort}`, remote])
      .listens(port)
    return { host: LOOPBACK, port }
  },
}
