/** Every refusal of an agent: the vendor's numbers, which SDKs look for, and a sentence that says what to do. */
import { printable } from '../lib/text/printable.ts'
import { BindRefusal } from './endpoint.ts'
import type { PoolDifference } from './pool.ts'

export const refusals = {
  // Authentication
  sessionMetadata: (max: number) =>
    refuse(100, `The metadata of the session is longer than ${max} bytes. Shorten it in the agent's configuration.`),
  tokenMalformed: () =>
    refuse(105, 'This is not an authtoken. Use the token that was shown when a tunnel credential was created.'),
  tokenUnknown: () =>
    refuse(
      107,
      'No tunnel credential has this authtoken. It may have been deleted, or be an API key, which opens no sessions. Create a tunnel credential and use its token.',
    ),
  authInvalid: (what: string) => refuse(109, `The authentication cannot be read: ${what}.`),
  legUnknown: () =>
    refuse(109, 'A further connection needs a session that is online, its cookie, and the authtoken it began with.'),
  legHeld: () => refuse(108, 'This data plane has a connection of the session already.'),
  nodeHeld: () => refuse(108, 'This node already has a session of this agent, which asked for one at another node.'),
  standbyUnknown: () =>
    refuse(109, 'A standby needs the id of a session, its cookie, and the authtoken it began with.'),
  authTwice: () => refuse(109, 'This connection has been authenticated already.'),
  addressRestricted: () =>
    refuse(
      220,
      'The IP restriction of this server does not let agents in from your address. Ask an admin to allow it.',
    ),
  credentialGone: () =>
    refuse(
      300,
      'The credential of this session has been deleted. Create a tunnel credential and start the agent with it.',
    ),

  // The session
  unknownCall: (type: number) =>
    refuse(800, `This server does not know calls of type ${type}. Update it, or the agent.`),
  callInvalid: (what: string) => refuse(801, `The message cannot be read: ${what}.`),
  notAuthenticated: () => refuse(801, 'Authenticate first.'),
  legCalls: () => refuse(801, 'A further connection carries visitors only. Use the first connection of the session.'),
  standbyCalls: () => refuse(801, 'A standby has no session yet. Begin it first.'),
  broken: () => refuse(802, 'Something broke on the side of the server; its log says what. Try again shortly.'),
  storeAway: () => refuse(802, 'The server cannot reach its database. Try again shortly.'),
  stopping: () => refuse(803, 'The server is stopping. Try again shortly.'),
  noCommonVersion: () => refuse(811, 'The agent speaks no version of the protocol that this server knows (3 and 2).'),
  messageTooLarge: (max: number) => refuse(812, `The message is longer than ${max} bytes.`),

  // Binds
  bindInvalid: (what: string) => refuse(301, `The tunnel cannot be started: ${what}.`),
  portOutside: (port: number, { from, to }: { from: number; to: number }) =>
    refuse(307, `No TCP endpoint can have the port ${port}. Ask for one from ${from} to ${to}, or for none.`),
  addressNotAllowed: (credential: string, address: string) =>
    refuse(308, `${notAllowed(credential)} the address ${shown(address)}. ${allowIt(address)}`),
  nameNotAllowed: (credential: string, name: string) =>
    refuse(316, `${notAllowed(credential)} the name ${shown(name)}. ${allowIt(name)}`),
  randomNameNotAllowed: (credential: string, domain: string) =>
    refuse(
      316,
      `The ACL of the credential ${credential} allows no random names. Ask for a name it allows, or add the rule \`bind:*.${domain}\`.`,
    ),
  tooManyTunnels: (max: number) =>
    refuse(324, `This session has ${max} tunnels already. Stop some, or start another agent.`),
  badName: (number: number, name: string, what: string) => refuse(number, `The name ${shown(name)} ${what}.`),
  unknownProtocol: (proto: string) =>
    refuse(332, `${shown(proto)} is not a protocol of endpoints. Use http, https, tcp or tls.`),
  noSuchTunnel: (id: string) => refuse(333, `This session has no tunnel with the id ${shown(id)}.`),
  tunnelStopped: () => refuse(333, 'This tunnel was stopped by the server. Start a new one.'),
  nothingFree: (what: string) => refuse(334, `No random ${what} was free. Try again, or ask for a certain one.`),
  ipPolicyRef: () =>
    refuse(341, 'A tunnel cannot name an IP policy. Give it networks to allow, or use an edge with an IP restriction.'),
  randomPortNotAllowed: (credential: string) =>
    refuse(
      356,
      `The ACL of the credential ${credential} allows no random TCP addresses. Ask for an address it allows, or add the rule \`bind:*\`.`,
    ),
  noLabels: () => refuse(394, 'A tunnel needs a protocol or labels, and this one has neither.'),
  portUnavailable: (port: number | undefined) =>
    taken(309, `port ${port} cannot be opened on this server; ask for another`),
  notProven: (why: string) => refuse(320, why),
  reserved: (hostport: string) => taken(334, `${hostport} is reserved`),
  alreadyOnline: (hostport: string, difference?: PoolDifference) => taken(334, `${hostport} ${whyNot(difference)}`),
  heldByEdge: (hostport: string, edgeId: string) => {
    const whose = edgeId.startsWith('agin_') ? 'the agent ingress' : 'the edge'
    return taken(381, `${hostport} belongs to ${whose} ${edgeId}; detach it there, or ask for another`)
  },
  belowWildcard: (name: string, wildcard: { readonly name: string; readonly holderId: string }) =>
    refuse(
      381,
      `${name} stands below ${wildcard.name}, which ${wildcard.holderId} holds; use a credential whose ACL has the rule bind:${name} or bind:${wildcard.name}`,
    ),
  labelNotAllowed: (credential: string, label: string) =>
    refuse(399, `${notAllowed(credential)} the label ${shown(label)}. ${allowIt(label)}`),
} as const

const notAllowed = (credential: string): string => `The ACL of the credential ${credential} does not allow`
const allowIt = (target: string): string => `Ask for what it allows, or add the rule ${shown(`bind:${target}`)}.`

function refuse(ngrok: number, message: string): BindRefusal {
  return new BindRefusal(ngrok, message)
}

/** The refusal of an address where another may be free. */
function taken(ngrok: number, message: string): BindRefusal {
  return new BindRefusal(ngrok, message, { isTaken: true })
}

/** Why an address that is taken cannot be shared. The vendor has one number for all of it. */
function whyNot(difference: PoolDifference | undefined): string {
  const other = 'stop the other tunnel, or ask for another address'
  switch (difference) {
    case 'is alone':
      return `is already online, with a tunnel that does not share its address; start both with pooling, or ${other}`
    case 'owner':
      return 'is already online, and belongs to another owner; ask for another address'
    case 'protocol':
    case 'policy':
    case 'guards':
      return `is already online, and ${differs[difference]} of the tunnels there; start all with the same, or ${other}`
    case 'asks alone':
    case undefined:
      return `is already online; ${other}`
  }
}

const differs = {
  protocol: 'the protocol, or the PROXY header, of this tunnel is not that',
  policy: 'the traffic policy of this tunnel is not that',
  guards: 'the guards and other options of this tunnel are not those',
} as const

/** How much of an agent's text an answer repeats, in characters. */
const MAX_SHOWN = 100

/** An agent's text, made safe to repeat. */
function shown(text: string): string {
  const cut = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
  return `\`${printable(cut).toWellFormed()}\``
}
