/** Opens the listeners of a data plane: for visitors, for agents and for SSH clients. */
import { boundTo, listening, openListener } from '../../data-plane/edge/open-listener.ts'
import { PublicListener } from '../../data-plane/edge/public-listener.ts'
import { httpRefusals } from '../../data-plane/edge/refuse-http.ts'
import { sshLimits } from '../../data-plane/ssh/ssh-limits.ts'
import { AgentListener } from '../../data-plane/tunnel/agent-listener.ts'
import { ListenerCertificates } from '../../data-plane/tunnel/listener-certificates.ts'
import { admissionOf, listenerLimits } from '../../data-plane/tunnel/tunnel-limits.ts'
import { addressText } from '../../lib/net/listen-on.ts'
import { LOOKUP_MS } from '../../link/planes/control-link.ts'
import { agentTls } from '../config/plane-settings.ts'
import type { OpeningPlane, PlaneParts } from './opening-plane.ts'

/** The holder of TCP ports that a service manager opened. */
const HANDED_IN = 'handed in'

const wait = { withinMs: LOOKUP_MS }

/** For visitors, who wait at the doorstep; ports of TCP edges are opened as these come. */
export async function listenForVisitors(
  { listeners, tcpPorts, live, publicPorts, descriptors, now, log, opened }: OpeningPlane,
  { limits, gate, table, visitors }: PlaneParts,
) {
  const { onGreeted, onPlain } = visitors.router
  const common = { caps: limits.caps.visitors, descriptors, giveWay: gate.idle.giveWay, log, now }
  const secure = new PublicListener({ ...common, meet: gate.meetAdmitted, onConnection: onGreeted })
  gate.idle.watch(secure, table.tls, visitors.front, visitors.router)
  const httpsAddress = listening(await secure.listen(listeners.https))
  opened.defer(() => {
    void secure.close()
    secure.sendAway()
  })
  publicPorts.https ||= httpsAddress.port
  const plain = listening(
    await openListener({
      ...common,
      on: listeners.http,
      meet: gate.held.meet,
      onTooMany: httpRefusals({ ngrokErrorHeader: () => live.now.ngrokErrorHeader }),
      onConnection: onPlain,
    }),
  )
  opened.defer(() => void plain.close())
  const httpAddress = boundTo(plain)
  publicPorts.http ||= httpAddress.port
  for (const port of tcpPorts.handed) listening(await table.ports.open(port, HANDED_IN))
  return { secure, plain, addresses: { https: addressText(httpsAddress), http: addressText(httpAddress) } }
}

/** For agents and for SSH clients; from here on they are served. */
export async function listenForAgents(plane: OpeningPlane, { mirrors, limits, gate, tunnels, remote }: PlaneParts) {
  const { settings, live, listeners, control, authority, seal, planeId, planeCount, version, opened } = plane
  const { restrictions, certificates, uploaded, ingresses, admitsAgent } = mirrors
  const { online } = tunnels
  const { ids, now, log, descriptors } = plane
  const common = { online, admits: admitsAgent, meet: gate.throughHops, ids, now, log, descriptors }
  restrictions.whenChanged(() => online.dropUnadmitted(admitsAgent))
  const shown = new ListenerCertificates({
    ...{ authority, certificates, uploaded, ingresses },
    settings: agentTls(settings),
  })
  live.whenChanged((next) => shown.use(agentTls(next)))
  const agents = new AgentListener({
    ...common,
    ...shown.shown(),
    caps: limits.caps.agents,
    limits: admissionOf(listenerLimits, planeCount),
    credentials: {
      find: (token) => control.ask('findCredential', { token: token.reveal() }, wait),
      recall: (token, sessionId) => control.ask('recallCredential', { token: token.reveal(), sessionId }, wait),
    },
    ...{ seal, version, planeId, planeCount, nodes: remote.agentNodes },
  })
  await shown.ready()
  const agentAddress = await agents.listen(listeners.agent)
  opened.defer(() => agents.stop())
  opened.defer(shown.keepUp(agents))

  // Loaded after the agents' listener, which is more urgent.
  const { SshListener } = await import('../../data-plane/ssh/ssh-listener.ts')
  const ssh = new SshListener({
    ...common,
    hostKey: plane.sshHostKey,
    caps: limits.caps.ssh,
    limits: admissionOf(sshLimits, planeCount),
    credentials: {
      find: (fingerprint) => control.ask('findSshCredential', { fingerprint }, wait),
      certificate: (digest) => control.ask('findSshCertificate', { digest }, wait),
    },
  })
  const sshAddress = await ssh.listen(listeners.ssh)
  return {
    agentListeners: [agents, ssh],
    addresses: { agents: addressText(agentAddress), ssh: addressText(sshAddress) },
  }
}
