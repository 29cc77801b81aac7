/** Postern: our server and our agent, a TCP endpoint and an HTTP endpoint. */
import { startAgent, startPosternServer } from '../../postern.ts'
import { LOOPBACK } from '../../stage/ports.ts'
import type { Contender } from './contender.ts'

export const posternTcp: Contender = {
  name: 'Postern tcp',
  link: 'L4 TLS',
  isOurs: true,
  needs: [],
  async start(upstreamPort, ground) {
    const server = await startPosternServer(ground)
    const { publicUrl } = await startAgent(ground, server, ['tcp', `${LOOPBACK}:${upstreamPort}`])
    return { host: LOOPBACK, port: Number(new URL(publicUrl).port) }
  },
}

export const posternHttp: Contender = {
  name: 'Postern http',
  link: 'L7 HTTP',
  isOurs: true,
  needs: [],
  async start(upstreamPort, ground) {
    const server = await startPosternServer(ground)
    const command = ['http', `${LOOPBACK}:${upstreamPort}`, '--scheme', 'http']
    const { publicUrl } = await startAgent(ground, server, command)
    return { host: LOOPBACK, port: server.httpPort, hostHeader: new URL(publicUrl).host }
  },
}
