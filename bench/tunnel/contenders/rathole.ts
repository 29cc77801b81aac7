/** rathole with its defaults: no encryption, and one connection to the server for each visitor. */
import { freePort, LOOPBACK } from '../../stage/ports.ts'
import type { Contender } from './contender.ts'

const TOKEN = 'bench_token'

export const rathole: Contender = {
  name: 'rathole',
  link: 'L4 plain',
  needs: ['rathole'],
  version: ['rathole', '--version'],
  async start(upstreamPort, { stage, path }) {
    const [serverPort, port] = [await freePort(), await freePort()]
    const section = (role: string, address: string, service: string): string =>
      `[${role}]\n${address}\ndefault_token = "${TOKEN}"\n[${role}.services.bench]\n${service}\n`
    const at = (where: number): string => `"${LOOPBACK}:${where}"`
    const server = section('server', `bind_addr = ${at(serverPort)}`, `bind_addr = ${at(port)}`)
    const agent = section('client', `remote_addr = ${at(serverPort)}`, `local_addr = ${at(upstreamPort)}`)
    const env = { RUST_LOG: 'error' }
    await stage.programs.start(path('rathole'), [await stage.write('server.toml', server)], { env }).listens(serverPort)
    await stage.programs.start(path('rathole'), [await stage.write('client.toml', agent)], { env }).listens(port)
    return { host: LOOPBACK, port }
  },
}
