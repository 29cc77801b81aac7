/** Agents for edges that reach their services through tunnel groups. */
import ngrok from '@ngrok/ngrok'
import { type Connection, connect } from '../../../src/agent/library.ts'
import type { Owner } from '../../support/upstream.ts'
import type { World } from './world.ts'

/** Our own agent. */
export async function ownAgent(
  owner: Owner,
  { platform }: World,
  { authtoken = platform.authtoken }: { readonly authtoken?: string } = {},
): Promise<Connection> {
  const { agents: server, ca } = platform
  const connection = await connect({ server, authtoken, ca })
  owner.after(() => connection.close())
  return connection
}

/** The official SDK, with one tunnel that carries these labels. */
export async function sdkTunnel(
  owner: Owner,
  { platform }: World,
  { labels, to, isHttp2 = false }: { labels: Readonly<Record<string, string>>; to: string; isHttp2?: boolean },
): Promise<void> {
  const builder = new ngrok.SessionBuilder().authtoken(platform.authtoken).serverAddr(platform.agents)
  const session = await builder.caCert(Buffer.from(platform.ca)).connect()
  owner.after(() => session.close())
  const tunnel = session.labeledListener()
  for (const [key, value] of Object.entries(labels)) tunnel.label(key, value)
  if (isHttp2) tunnel.appProtocol('http2')
  await tunnel.listenAndForward(`tcp://${to}`)
}
