/** frp with TLS between server and agent: a TCP proxy, and an HTTP proxy by name. */

import type { Entrance } from '../../entrance.ts'
import { freePort, LOOPBACK } from '../../stage/ports.ts'
import type { Contender, Ground } from './contender.ts'

const NAME = 'bench.test'
const TOKEN = 'bench_token'

const frp = { needs: ['frps', 'frpc'], version: ['frps', '--version'] } as const

export const frpTcp: Contender = {
  ...frp,
  name: 'frp tcp',
  link: 'L4 TLS',
  async start(upstreamPort, ground) {
    const port = await freePort()
    return startFrp(ground, upstreamPort, { host: LOOPBACK, port }, '', `type = "tcp"\nremotePort = ${port}\n`)
  },
}

export const frpHttp: Contender = {
  ...frp,
  name: 'frp http',
  link: 'L7 HTTP',
  async start(upstreamPort, ground) {
    const port = await freePort()
    const entrance = { host: LOOPBACK, port, hostHeader: NAME }
    const proxy = `type = "http"\ncustomDomains = ["${NAME}"]\n`
    return startFrp(ground, upstreamPort, entrance, `vhostHTTPPort = ${port}\n`, proxy)
  },
}

async function startFrp(
  { stage, path }: Ground,
  upstreamPort: number,
  entrance: Entrance,
  server: string,
  proxy: string,
): Promise<Entrance> {
  const bindPort = await freePort()
  const shared = `auth.token = "${TOKEN}"\nlog.level = "error"\n`
  const serverFile = await stage.write(
    'frps.toml',
    `bindAddr = "${LOOPBACK}"\nbindPort = ${bindPort}\ntransport.tls.force = true\n${server}${shared}`,
  )
  const agentFile = await stage.write(
    'frpc.toml',
    `serverAddr = "${LOOPBACK}"\nserverPort = ${bindPort}\ntransport.tls.enable = true\n${shared}
[[proxies]]\nname = "bench"\nlocalIP = "${LOOPBACK}"\nlocalPort = ${upstreamPort}\n${proxy}`,
  )
  await stage.programs.start(path('frps'), ['-c', serverFile]).listens(bindPort)
  await stage.programs.start(path('frpc'), ['-c', agentFile]).listens(entrance.port)
  return entrance
}
