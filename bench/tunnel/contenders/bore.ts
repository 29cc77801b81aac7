/** bore: no encryption, and one connection to the server for each visitor. */
import { freePort, LOOPBACK } from '../../stage/ports.ts'
import type { Contender } from './contender.ts'

/** The port is fixed in bore. */
const CONTROL_PORT = 7835

const SECRET = 'bench_secret'

export const bore: Contender = {
  name: 'bore',
  link: 'L4 plain',
  needs: ['bore'],
  version: ['bore', '--version'],
  async start(upstreamPort, { stage, path }) {
    const port = await freePort()
    const env = { RUST_LOG: 'error' }
    const server = ['server', '--bind-addr', LOOPBACK, '--secret', SECRET]
    await stage.programs.start(path('bore'), server, { env }).listens(CONTROL_PORT)
    const to = ['--local-host', LOOPBACK, '--to', LOOPBACK, '--port', String(port), '--secret', SECRET]
    await stage.programs.start(path('bore'), ['local', String(upstreamPort), ...to], { env }).listens(port)
    return { host: LOOPBACK, port }
  },
}
