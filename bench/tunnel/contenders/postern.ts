/** Postern: our server and our agent, a TCP endpoint and an HTTP endpoint. */
import { LOOPBACK } from '../ports.ts'
import type { Contender, Ground } from './contender.ts'
import { AUTHTOKEN, type PosternServer, startPostern, startPosternServer } from './postern-server.ts'

export const posternTcp: Contender = {
  name: 'Postern tcp',
  link: 'L4 TLS',
  isOurs: true,
  needs: [],
  async start(upstreamPort, ground) {
    const server = await startPosternServer(ground)
    const url = await startAgent(ground, server, ['tcp', `${LOOPBACK}:${upstreamPort}`])
    return { host: LOOPBACK, port: Number(url.port) }
  },
}

export const posternHttp: Contender = {
  name: 'Postern http',
  link: 'L7 HTTP',
  isOurs: true,
  needs: [],
  async start(upstreamPort, ground) {
    const server = await startPosternServer(ground)
    const url = await startAgent(ground, server, ['http', `${LOOPBACK}:${upstreamPort}`, '--scheme', 'http'])
    return { host: LOOPBACK, port: server.httpPort, hostHeader: url.host }
  },
}

async function startAgent(ground: Ground, server: PosternServer, command: readonly string[]): Promise<URL> {
  const to = ['--server', server.agentAddress, '--ca', server.caFile, '--authtoken', AUTHTOKEN]
  const agent = startPostern(ground, [...command, ...to])
  return server.tunnelUrl(agent)
}
