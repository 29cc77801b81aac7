/** The refusals of the SSH gateway, apart from those of binds: the vendor's numbers, and sentences that say what to do. */
import { printable } from '../../lib/text/printable.ts'
import { BindRefusal } from '../tunnel/interfaces.ts'

const EXAMPLE = 'ssh -R 80:localhost:3000 -p 2222 HOST http'

/** The vendor has one number for each flag that may repeat the name in `-R`. */
const numbersOfNames: Readonly<Record<string, number>> = {
  '--hostname': 1114,
  '--subdomain': 1115,
  '--domain': 1118,
  '--remote-addr': 1119,
  '--url': 1120,
}

export const sshRefusals = {
  // Login
  keysOnly: () =>
    refuse(1100, 'This server accepts public keys only. Add yours as an SSH credential, and offer it with `ssh -i`.'),
  tooManyKeys: (tries: number) =>
    refuse(
      1101,
      `${tries} logins failed on this connection. Offer the right key alone: \`ssh -o IdentitiesOnly=yes -i FILE\`.`,
    ),
  unknownKey: (fingerprint: string) =>
    refuse(1102, `No SSH credential has the key ${fingerprint}. Create one with its public key, then connect again.`),
  notProven: (fingerprint: string) =>
    refuse(
      1102,
      `The key ${fingerprint} was offered too often without a proof. Check that \`ssh\` can read its private key.`,
    ),
  weakKey: (type: string) =>
    refuse(
      1102,
      `Keys of type ${shown(type)} and signatures with SHA-1 are not accepted. Use ed25519, ECDSA, or RSA with SHA-2.`,
    ),
  unknownCertificate: () =>
    refuse(
      1102,
      'No SSH certificate authority of this server issued this certificate to a user, or it was deleted. Have another one signed.',
    ),
  badCertificate: (why: string) => refuse(1102, why),
  noPrincipal: () =>
    refuse(1102, 'The certificate names no SSH credential. Have one signed with the id of yours among its principals.'),
  noSuchPrincipal: (id: string) =>
    refuse(1102, `The certificate does not name an SSH credential ${shown(id)} that exists and may be used.`),
  severalPrincipals: (first: string) =>
    refuse(1102, `The certificate names several SSH credentials. Say which one: \`ssh -l ${printable(first)}\`.`),
  addressRestricted: () =>
    refuse(
      220,
      'The IP restriction of this server does not let agents in from your address. Ask an admin to allow it.',
    ),
  storeAway: () => refuse(802, 'The server cannot reach its database. Try again shortly.'),

  // The connection
  oneCommand: () =>
    refuse(1104, 'This connection already has a command. Open another connection, without `ControlMaster`.'),
  tooManyForwards: (max: number) =>
    refuse(1105, `A connection can have at most ${max} forwards. Open another connection.`),
  sameForward: (port: number) =>
    refuse(1105, `Port ${port} is forwarded twice under the same name. Leave one \`-R\` out, or give each a name.`),
  unknownVersion: (user: string) =>
    refuse(1106, `${shown(user)} is not a version of the command syntax. Use \`v2@HOST\`, or leave the user out.`),
  noCommand: () =>
    refuse(1107, `No command was given. Say what visitors speak: http, tls, tcp or labeled, such as \`${EXAMPLE}\`.`),
  unknownCommand: (word: string) =>
    refuse(
      1108,
      `${shown(word)} is not a command of this server. Use http, tls, tcp or labeled; there is no shell here, and no files.`,
    ),
  unsupportedFlag: (flag: string, what: string) =>
    refuse(1109, `${shown(flag)} ${what}${what.endsWith('?') ? '' : '.'}`),
  badFlag: (what: string) => refuse(1110, `The command cannot be read: ${what}.`),
  commandMissing: (seconds: number) =>
    refuse(1111, `No command came within ${seconds} seconds. Name one, and leave out \`-N\`: \`${EXAMPLE}\`.`),
  forwardMissing: (seconds: number) =>
    refuse(1112, `No forward came within ${seconds} seconds. Ask for one with \`-R\`: \`${EXAMPLE}\`.`),

  // Names and ports
  badPort: (kind: string, port: number, allowed: string) =>
    refuse(1113, `A tunnel of kind ${kind} cannot have port ${port}. Ask for ${allowed}, or 0 for the default port.`),
  namedTwice: (flag: string) =>
    refuse(numbersOfNames[flag] ?? 1118, `The name is given in \`-R\` and in \`${flag}\`. Give it once.`),
  portMissing: (name: string) =>
    refuse(1117, `A TCP address needs its port too. Ask for \`-R ${printable(name)}:PORT:…\`, or leave the name out.`),

  // What is not served
  notForwarded: () =>
    refuse(1108, 'This server only forwards from its own public addresses to you: use `-R`, not `-L`, `-D` or `-W`.'),
  noSockets: () => refuse(1108, 'This server does not forward Unix sockets. Use `-R PORT:…`.'),
} as const

/** A refusal as clients show it. */
export function refusalText({ message, ngrok }: BindRefusal): string {
  return `${message} (ERR_NGROK_${ngrok})`
}

function refuse(ngrok: number, message: string): BindRefusal {
  return new BindRefusal(ngrok, message)
}

/** The most characters of a client's text that an answer repeats. */
const MAX_SHOWN = 100

function shown(text: string): string {
  const cut = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
  return `\`${printable(cut).toWellFormed()}\``
}
