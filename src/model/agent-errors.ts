/**
 * Every refusal of an agent or `ssh`: ngrok's number, which SDKs look for, when the refusal comes, what to do, and its
 * sentences.
 *
 * One thing: one table.
 */
import { printable } from '../lib/text/printable.ts'
import { BindRefusal } from './endpoint.ts'
import type { PoolDifference } from './pool.ts'

const EXAMPLE = 'ssh -R 80:localhost:3000 -p 2222 HOST http'

const rows = {
  // Authentication
  100: row('The metadata of the session is too long.', 'Shorten `metadata` in the agent’s configuration.', {
    sessionMetadata: (max: number) =>
      `The metadata of the session is longer than ${max} bytes. Shorten it in the agent's configuration.`,
  }),
  105: row(
    'What was sent as an authtoken does not have the form of one.',
    'Copy the token again, from the first start of the server or from `postern api credentials create`.',
    {
      tokenMalformed: () =>
        'This is not an authtoken. Use the token that was shown when a tunnel credential was created.',
    },
  ),
  107: row(
    'No tunnel credential has this authtoken: it was deleted, or it is an API key.',
    'Create a tunnel credential and use its token.',
    {
      tokenUnknown: () =>
        'No tunnel credential has this authtoken. It may have been deleted, or be an API key, which opens no sessions. Create a tunnel credential and use its token.',
    },
  ),
  108: row(
    'A further connection of a session reached a worker that already has one.',
    'Nothing: the agent tries again, or goes on with the connections that it has.',
    {
      legHeld: () => 'This data plane has a connection of the session already.',
      nodeHeld: () => 'This node already has a session of this agent, which asked for one at another node.',
    },
  ),
  109: row('The login of the agent cannot be read, or came twice.', 'Update the agent, or report it as a fault.', {
    authInvalid: (what: string) => `The authentication cannot be read: ${what}.`,
    authTwice: () => 'This connection has been authenticated already.',
    legUnknown: () =>
      'A further connection needs a session that is online, its cookie, and the authtoken it began with.',
    standbyUnknown: () => 'A standby needs the id of a session, its cookie, and the authtoken it began with.',
  }),
  220: row('The IP restriction of type `agent` does not admit the address.', 'Ask an admin to allow it.', {
    addressRestricted: () =>
      'The IP restriction of this server does not let agents in from your address. Ask an admin to allow it.',
  }),
  300: row('The credential of a running session was deleted.', 'Start the agent with another authtoken.', {
    credentialGone: () =>
      'The credential of this session has been deleted. Create a tunnel credential and start the agent with it.',
  }),

  // Binds
  301: row('The tunnel cannot be started as requested. The message names the option.', 'Correct that option.', {
    bindInvalid: (what: string) => `The tunnel cannot be started: ${what}.`,
    badOption: plain,
  }),
  307: row(
    'The TCP port is outside `--tcp-ports`.',
    'Ask for a port in the range that the message names, or for none.',
    {
      portOutside: (port: number, { from, to }: { from: number; to: number }) =>
        `No TCP endpoint can have the port ${port}. Ask for one from ${from} to ${to}, or for none.`,
    },
  ),
  308: row('The ACL of the credential does not allow this TCP address.', 'Ask for what it allows, or add a rule.', {
    addressNotAllowed: (credential: string, address: string) =>
      `${notAllowed(credential)} the address ${showText(address)}. ${allowIt(address)}`,
  }),
  309: row('Another program on the server has that TCP port.', 'Ask for another port.', {
    portUnavailable: (port: number | undefined) => `port ${port} cannot be opened on this server; ask for another`,
  }),
  316: row('The ACL of the credential does not allow this name.', 'Ask for what it allows, or add a rule.', {
    nameNotAllowed: (credential: string, name: string) =>
      `${notAllowed(credential)} the name ${showText(name)}. ${allowIt(name)}`,
    randomNameNotAllowed: (credential: string, domain: string) =>
      `The ACL of the credential ${credential} allows no random names. Ask for a name it allows, or add the rule \`bind:*.${domain}\`.`,
  }),
  320: row(
    "The name is outside of the server's domain, and no record in the DNS proves that it belongs here.",
    'Set the record in the message, or ask an admin to reserve the name.',
    { nameUnproven: plain },
  ),
  324: row('The session has reached its limit of tunnels.', 'Stop some, or start another agent.', {
    tooManyTunnels: (max: number) => `This session has ${max} tunnels already. Stop some, or start another agent.`,
  }),
  326: row('The name has a character that names cannot have.', 'Correct the name.', { badCharacter: badName }),
  327: row('The name begins with a dot or has two in a row.', 'Correct the name.', { badDot: badName }),
  328: row('A part of the name begins with a hyphen.', 'Correct the name.', { hyphenFirst: badName }),
  329: row('A part of the name ends with a hyphen.', 'Correct the name.', { hyphenLast: badName }),
  330: row('A part of the name has hyphens in its third and fourth place.', 'Correct the name.', {
    hyphensLikePunycode: badName,
  }),
  331: row(
    'The name ends in `.internal`, which means an internal endpoint. Postern has none.',
    'Ask for another name.',
    { internalName: (name: string) => badName(name, 'is for internal endpoints, which this server does not have') },
  ),
  332: row('The protocol is not known.', 'Use `http`, `https`, `tcp` or `tls`.', {
    unknownProtocol: (proto: string) =>
      `${showText(proto)} is not a protocol of endpoints. Use http, https, tcp or tls.`,
  }),
  333: row('The tunnel is no longer there.', 'Start it again.', {
    noSuchTunnel: (id: string) => `This session has no tunnel with the id ${showText(id)}.`,
    tunnelStopped: () => 'This tunnel was stopped by the server. Start a new one.',
  }),
  334: row(
    'The address is online already, reserved, or no random one was free.',
    'Stop the other tunnel, or ask for another address.',
    {
      reserved: (address: string) => `${address} is reserved`,
      alreadyOnline: (address: string, difference?: PoolDifference) => `${address} ${whyNot(difference)}`,
      nothingFree: (what: string) => `No random ${what} was free. Try again, or ask for a certain one.`,
    },
  ),
  341: row(
    'A tunnel names an IP policy, which only an edge can.',
    'Give the tunnel networks to allow, or use an edge.',
    {
      ipPolicyRef: () =>
        'A tunnel cannot name an IP policy. Give it networks to allow, or use an edge with an IP restriction.',
    },
  ),
  347: row('A name in another script cannot be written in ASCII.', 'Correct the name.', { noAsciiForm: badName }),
  355: row('The name has an underscore.', 'Use a hyphen.', { underscore: badName }),
  356: row(
    'The ACL of the credential allows no random TCP port.',
    'Ask for an address that it allows, or add the rule `bind:*`.',
    {
      randomPortNotAllowed: (credential: string) =>
        `The ACL of the credential ${credential} allows no random TCP addresses. Ask for an address it allows, or add the rule \`bind:*\`.`,
    },
  ),
  381: row(
    'An edge, a reserved wildcard or the server itself holds the address.',
    'Ask for another; below a wildcard, use a credential whose ACL names it.',
    {
      heldByEdge: (address: string, edge: string) =>
        `${address} belongs to ${edge.startsWith('agin_') ? 'the agent ingress' : 'the edge'} ${edge}; detach it there, or ask for another`,
      ofServer: (name: string) =>
        `${name} is a name of the server itself, by which its API or its agents reach it; ask for another`,
      belowWildcard: (name: string, wildcard: { readonly name: string; readonly holderId: string }) =>
        `${name} stands below ${wildcard.name}, which ${wildcard.holderId} holds; use a credential whose ACL has the rule bind:${name} or bind:${wildcard.name}`,
    },
  ),
  394: row('A tunnel has neither a protocol nor labels.', 'Give it one of them.', {
    noLabels: () => 'A tunnel needs a protocol or labels, and this one has neither.',
  }),
  396: row('A part of the name is longer than 63 characters.', 'Shorten it.', { labelTooLong: badName }),
  397: row('The name is longer than 253 characters.', 'Shorten it.', { nameTooLong: badName }),
  399: row('The ACL of the credential does not allow this label.', 'Use what it allows, or add a rule.', {
    labelNotAllowed: (credential: string, label: string) =>
      `${notAllowed(credential)} the label ${showText(label)}. ${allowIt(label)}`,
  }),
  9037: row('The URL of the tunnel is not valid.', 'Correct it.', { badUrl: plain }),

  // Options of binds. Their sentences are joined to one.
  359: row('Basic auth has no user, or a user name that cannot be used.', 'Correct the credentials.', {
    badUser: plain,
  }),
  360: row('A password of basic auth is too short or too long.', 'Use 8 to 128 characters.', {
    badPassword: (least: number, most: number, chars: number) =>
      `the password of a credential must have ${least} to ${most} characters; this one has ${chars}`,
  }),
  361: row('The threshold of the circuit breaker is out of range.', 'Use a number between 0 and 1.', {
    badThreshold: (name: string) => `\`${name}.error_threshold\` must be between 0 and 1`,
  }),
  362: row('A network of the IP restriction is not in CIDR form.', 'Write it as the message shows.', {
    badNetwork: plain,
  }),
  363: row('Webhook verification names no provider.', 'Name one of those that the message lists.', {
    noWebhookProvider: (name: string, supported: string) => `\`${name}.provider\` must be one of ${supported}`,
  }),
  364: row('Webhooks of this provider cannot be verified.', 'Name one of those that the message lists.', {
    unknownWebhookProvider: (supported: string) =>
      `webhooks of this provider cannot be verified; supported are ${supported}`,
  }),
  365: row(
    'OAuth names no known provider, or no application of yours.',
    'Register an application at the provider and give its client id and secret.',
    {
      unknownProvider: (name: string, known: string) => `\`${name}.provider\` must be one of ${known}`,
      noApplication: (name: string) =>
        `\`${name}\` needs an application at this provider, and this server has none to lend; register your own there, and give its \`client_id\` and \`client_secret\``,
    },
  ),
  366: row('OAuth allows too many addresses.', 'Allow their domain instead.', { tooManyEmails: tooMany }),
  367: row('OAuth allows too many domains.', 'Shorten the list.', { tooManyDomains: tooMany }),
  368: row('OAuth asks for too many scopes.', 'Shorten the list.', { tooManyOAuthScopes: tooMany }),
  370: row('A header to add to requests is not `name:value`.', 'Correct it.', {
    requestPair: () => 'a header to add to a request must be `name:value`',
  }),
  371: row('A header to add to responses is not `name:value`.', 'Correct it.', {
    responsePair: () => 'a header to add to a response must be `name:value`',
  }),
  372: row('A header of requests cannot be changed, or has an invalid name.', 'Leave it out.', {
    badRequestHeader: plain,
  }),
  373: row('A header of responses cannot be changed, or has an invalid name.', 'Leave it out.', {
    badResponseHeader: plain,
  }),
  374: row('The value of a header cannot be sent.', 'Correct it.', { badHeaderValue: plain }),
  375: row('One header is added in two spellings.', 'Keep one of them.', {
    twoSpellings: (one: string, other: string) => `\`${one}\` and \`${other}\` are the same header; use one spelling`,
  }),
  376: row('Too many headers are added or removed.', 'Shorten the list.', {
    tooManyHeaders: (list: string, max: number) => `\`${list}\` has more than ${max} headers`,
  }),
  377: row('The name of a header is too long.', 'Shorten it.', {
    headerNameTooLong: (name: string) => `the header name that begins with \`${name.slice(0, 20)}\` is too long`,
  }),
  378: row('The value of a header is too long.', 'Shorten it.', {
    headerValueTooLong: (name: string, max: number) => `the value of \`${name}\` has more than ${max} bytes`,
  }),
  379: row('The key for webhooks of SendGrid cannot be read.', 'Copy it again.', { badSendgridKey: plain }),
  383: row('OAuth has a client id and no secret.', 'Give both.', {
    idWithoutSecret: (name: string) => `\`${name}\` has a client id and no client secret`,
  }),
  384: row('OAuth has a client secret and no id.', 'Give both.', {
    secretWithoutId: (name: string) => `\`${name}\` has a client secret and no client id`,
  }),
  385: row('OIDC has no client id.', 'Give it.', { noOidcId: (name: string) => isEmpty(`${name}.client_id`) }),
  386: row('OIDC has no client secret.', 'Give it.', {
    noOidcSecret: (name: string) => isEmpty(`${name}.client_secret`),
  }),
  387: row('OIDC has no issuer.', 'Give its URL.', { noOidcIssuer: (name: string) => isEmpty(`${name}.issuer_url`) }),
  388: row('OIDC asks for too many scopes.', 'Shorten the list.', { tooManyOidcScopes: tooMany }),
  391: row('A scope of OAuth is too long.', 'Shorten it.', { longOAuthScope: longScope }),
  392: row('A scope of OIDC is too long.', 'Shorten it.', { longOidcScope: longScope }),
  393: row('An IP restriction allows no network, so nobody would get in.', 'Allow at least one.', {
    noNetwork: (name: string) =>
      `\`${name}\` needs at least one network in \`allow_cidrs\`, or nobody gets in; \`0.0.0.0/0\` and \`::/0\` let in everybody that \`deny_cidrs\` does not name`,
  }),
  398: row('The `Host` header cannot be removed.', 'Set it to another value instead.', {
    hostRemoved: () => '`host` cannot be removed without a new value in `add`',
  }),
  1903: row('A private key cannot be read.', 'Give it as PEM, unencrypted.', { badKey: about }),
  1920: row('A certificate cannot be read, or is not a CA where one is needed.', 'Give it as PEM.', {
    badTlsCertificate: about,
  }),
  1923: row('Private key and certificate do not belong together.', 'Give the pair.', { keyMismatch: about }),
  2201: row('The traffic policy is not valid.', 'Try it with `postern policy test`.', { badPolicy: plain }),

  // Messages
  800: row('The agent calls something that this server does not know.', 'Update the server, or the agent.', {
    unknownCall: (type: number) => `This server does not know calls of type ${type}. Update it, or the agent.`,
  }),
  801: row('A message of the agent cannot be read.', 'Update the agent, or report it as a fault.', {
    callInvalid: (what: string) => `The message cannot be read: ${what}.`,
    notAuthenticated: () => 'Authenticate first.',
    legCalls: () => 'A further connection carries visitors only. Use the first connection of the session.',
    standbyCalls: () => 'A standby has no session yet. Begin it first.',
  }),
  802: row(
    'The server failed, is too busy, or cannot reach its database.',
    'Try again shortly. The log of the server says more.',
    {
      broken: () => 'Something broke on the side of the server; its log says what. Try again shortly.',
      bindsBusy: () => 'Too many binds of your credential wait already. Try again shortly.',
      checksBusy: () => 'Too many of your documents are still being checked. Try again shortly.',
      storeAway: () => 'The server cannot reach its database. Try again shortly.',
    },
  ),
  803: row('The server is stopping.', 'Try again shortly; agents do so automatically.', {
    stopping: () => 'The server is stopping. Try again shortly.',
  }),
  811: row('Server and agent have no version of the protocol in common.', 'Update the older one.', {
    noCommonVersion: () => 'The agent speaks no version of the protocol that this server knows (3 and 2).',
  }),
  812: row('A message of the agent is too large.', 'Make the options smaller, such as a traffic policy.', {
    messageTooLarge: (max: number) => `The message is longer than ${max} bytes.`,
  }),

  // Logins with `ssh`
  1100: row('`ssh` offered a password.', 'Add your public key as an SSH credential.', {
    keysOnly: () => 'This server accepts public keys only. Add yours as an SSH credential, and offer it with `ssh -i`.',
  }),
  1101: row('Too many logins failed on one connection.', 'Offer the right key alone.', {
    tooManyKeys: (tries: number) =>
      `${tries} logins failed on this connection. Offer the right key alone: \`ssh -o IdentitiesOnly=yes -i FILE\`.`,
  }),
  1102: row('No SSH credential has the key, or the certificate is not valid.', 'Do what the message says.', {
    badCertificate: plain,
    noPrincipal: () =>
      'The certificate names no SSH credential. Have one signed with the id of yours among its principals.',
    noSuchPrincipal: (id: string) =>
      `The certificate does not name an SSH credential ${showText(id)} that exists and may be used.`,
    notProven: (fingerprint: string) =>
      `The key ${fingerprint} was offered too often without a proof. Check that \`ssh\` can read its private key.`,
    severalPrincipals: (first: string) =>
      `The certificate names several SSH credentials. Say which one: \`ssh -l ${printable(first)}\`.`,
    unknownCertificate: () =>
      'No SSH certificate authority of this server issued this certificate to a user, or it was deleted. Have another one signed.',
    unknownKey: (fingerprint: string) =>
      `No SSH credential has the key ${fingerprint}. Create one with its public key, then connect again.`,
    weakKey: (type: string) =>
      `Keys of type ${showText(type)} and signatures with SHA-1 are not accepted. Use ed25519, ECDSA, or RSA with SHA-2.`,
  }),

  // Commands and forwards of `ssh`
  1104: row('The connection serves another command already.', 'Open another one.', {
    oneCommand: () => 'This connection already has a command. Open another connection, without `ControlMaster`.',
  }),
  1105: row('A connection has too many forwards, or the same one twice.', 'Leave some out.', {
    sameForward: (port: number) =>
      `Port ${port} is forwarded twice under the same name. Leave one \`-R\` out, or give each a name.`,
    tooManyForwards: (max: number) => `A connection can have at most ${max} forwards. Open another connection.`,
  }),
  1106: row('The user name is not a known version of the command syntax.', 'Leave it out.', {
    unknownVersion: (user: string) =>
      `${showText(user)} is not a version of the command syntax. Use \`v2@HOST\`, or leave the user out.`,
  }),
  1107: row('`ssh` gave no command.', 'Add `http`, `tls`, `tcp` or `labeled`.', {
    noCommand: () =>
      `No command was given. Say what visitors speak: http, tls, tcp or labeled, such as \`${EXAMPLE}\`.`,
  }),
  1108: row('The gateway does not do that: it has no shell and no files.', 'Use `-R` and a command.', {
    notForwarded: () =>
      'This server only forwards from its own public addresses to you: use `-R`, not `-L`, `-D` or `-W`.',
    noSockets: () => 'This server does not forward Unix sockets. Use `-R PORT:…`.',
    unknownCommand: (word: string) =>
      `${showText(word)} is not a command of this server. Use http, tls, tcp or labeled; there is no shell here, and no files.`,
  }),
  1109: row('A flag does not work over SSH.', 'Do what the message says.', {
    unsupportedFlag: (flag: string, what: string) => `${showText(flag)} ${what}${what.endsWith('?') ? '' : '.'}`,
  }),
  1110: row('A flag cannot be read.', 'Correct it.', {
    badFlag: (what: string) => `The command cannot be read: ${what}.`,
  }),
  1111: row('No command came in time.', 'Name one, and leave out `-N`.', {
    commandMissing: (seconds: number) =>
      `No command came within ${seconds} seconds. Name one, and leave out \`-N\`: \`${EXAMPLE}\`.`,
  }),
  1112: row('No forward came in time.', 'Ask for one with `-R`.', {
    forwardMissing: (seconds: number) =>
      `No forward came within ${seconds} seconds. Ask for one with \`-R\`: \`${EXAMPLE}\`.`,
  }),
  1113: row('The kind of tunnel cannot have that port.', 'Ask for another, or for 0.', {
    badPort: (kind: string, port: number, allowed: string) =>
      `A tunnel of kind ${kind} cannot have port ${port}. Ask for ${allowed}, or 0 for the default port.`,
  }),
  1114: row('The name is given in `-R` and in `--hostname`.', 'Give it once.', { hostnameTwice: namedTwice }),
  1115: row('The name is given in `-R` and in `--subdomain`.', 'Give it once.', { subdomainTwice: namedTwice }),
  1117: row('A TCP address has no port.', 'Give it, or leave the name out.', {
    portMissing: (name: string) =>
      `A TCP address needs its port too. Ask for \`-R ${printable(name)}:PORT:…\`, or leave the name out.`,
  }),
  1118: row('The name is given in `-R` and in `--domain`.', 'Give it once.', { domainTwice: namedTwice }),
  1119: row('The address is given in `-R` and in `--remote-addr`.', 'Give it once.', { remoteAddrTwice: namedTwice }),
  1120: row('The address is given in `-R` and in `--url`.', 'Give it once.', { urlTwice: namedTwice }),
} as const

interface AgentError {
  readonly when: string
  readonly remedy: string
  /** By name, what an agent is told. */
  readonly says: Readonly<Record<string, Sentence>>
}

type Sentence = (...details: never[]) => string

/** By number. */
export const agentErrors: Readonly<Record<number, AgentError>> = rows

type Sentences = Joined<(typeof rows)[keyof typeof rows]['says']>
type Joined<Union> = (Union extends unknown ? (each: Union) => void : never) extends (all: infer All) => void
  ? All
  : never

type Refusals = {
  readonly [Name in keyof Sentences]: Sentences[Name] extends (...details: infer Details) => string
    ? (...details: Details) => BindRefusal
    : never
}

/** Refusals of an address where another one may be free. */
const TAKEN: readonly string[] = ['portUnavailable', 'reserved', 'alreadyOnline', 'heldByEdge']

/** Makes a refusal of each sentence. */
export const refusals = Object.fromEntries(
  Object.entries(agentErrors).flatMap(([number, { says }]) =>
    Object.entries(says).map(([name, sentence]) => [
      name,
      (...details: never[]) => new BindRefusal(Number(number), sentence(...details), { isTaken: TAKEN.includes(name) }),
    ]),
  ),
) as Refusals // names and parameters are those of the rows

function row<Says extends AgentError['says']>(when: string, remedy: string, says: Says) {
  return { when, remedy, says }
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

function notAllowed(credential: string): string {
  return `The ACL of the credential ${credential} does not allow`
}

function allowIt(target: string): string {
  return `Ask for what it allows, or add the rule ${showText(`bind:${target}`)}.`
}

function badName(name: string, what: string): string {
  return `The name ${showText(name)} ${what}.`
}

function namedTwice(flag: string): string {
  return `The name is given in \`-R\` and in \`${flag}\`. Give it once.`
}

function tooMany(list: string, entries: number, max: number): string {
  return `\`${list}\` has ${entries} entries; the limit is ${max}`
}

function longScope(name: string, max: number): string {
  return `\`${name}.scopes\` has an entry of more than ${max} bytes`
}

function isEmpty(name: string): string {
  return `\`${name}\` must not be empty`
}

function about(field: string, fault: string): string {
  return `\`${field}\`: ${fault}`
}

/** For sentences that are made where the fault is found. */
function plain(sentence: string): string {
  return sentence
}

/** How much of an agent's text an answer repeats, in characters. */
const MAX_SHOWN = 100

/** An agent's text, made safe to repeat. */
function showText(text: string): string {
  const cut = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
  return `\`${printable(cut).toWellFormed()}\``
}
