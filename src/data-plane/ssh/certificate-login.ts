/** Decides whether a user certificate opens the gateway, and as which credential; `proof.ts` checks the client's key. */
import { isIP } from 'node:net'
import { compileIpRules } from '../../lib/net/ip-rules.ts'
import { BadInput } from '../../lib/shape/bad-input.ts'
import { readSshCertificate, type SshCertificate, sshCertificateDigest } from '../../lib/ssh-keys/ssh-certificate.ts'
import { refusals } from '../../model/agent-errors.ts'
import { type AgentCredential, BindRefusal } from '../tunnel/interfaces.ts'
import type { SshContext } from './ssh-context.ts'

/** As whom a client is let in. */
export interface Entry {
  readonly credential: AgentCredential
  /** The certificate that names the credential; absent when the client used the credential's own key. */
  readonly certificate?: { readonly id: string; readonly digest: string }
  /** The command that runs, whatever the client asks for. */
  readonly forced?: string | undefined
}

interface Asking {
  readonly blob: Buffer
  /** The name that the client logs in with. */
  readonly user: string
  readonly ip: string
}

interface EntryContext extends Pick<SshContext, 'credentials' | 'now'> {
  readonly online: Pick<SshContext['online'], 'currentCredential'>
}

/** The prefix of SSH credential ids. */
const CREDENTIAL = 'sshcr_'

/** Throws when the store is unavailable. */
export async function entryBy(
  { blob, user, ip }: Asking,
  { online, credentials, now }: EntryContext,
): Promise<Entry | BindRefusal> {
  const certificate = readOrRefuse(blob)
  if (certificate instanceof BindRefusal) return certificate
  const { authorityBlob, keyBlob, criticalOptions } = certificate
  const digest = sshCertificateDigest(blob)
  // The keys of our authorities never leave the server, so every certificate they issued is stored until it is deleted.
  const issued = await credentials.certificate(digest)
  if (!issued?.authorityBlob.equals(authorityBlob)) return refusals.unknownCertificate()
  const refusal = faultOf(certificate, now(), ip)
  if (refusal) return refusal
  // An authority's own key is not meant for logins: whoever holds it could certify anything.
  if (keyBlob.equals(authorityBlob)) return refusals.badCertificate('The certificate is for its own authority.')
  const id = credentialNamed(certificate.principals, user)
  if (id instanceof BindRefusal) return id
  const credential = await online.currentCredential(id)
  if (!credential) return refusals.noSuchPrincipal(id)
  return { credential, certificate: { id: issued.id, digest }, forced: criticalOptions['force-command'] }
}

function readOrRefuse(blob: Buffer): SshCertificate | BindRefusal {
  try {
    return readSshCertificate(blob)
  } catch (error) {
    if (error instanceof BadInput) return refusals.badCertificate(error.message)
    throw error
  }
}

function faultOf(
  { kind, validAfter, validBefore, criticalOptions }: SshCertificate,
  now: number,
  ip: string,
): BindRefusal | undefined {
  if (kind !== 'user') return refusals.badCertificate('The certificate is for a host, not for a user.')
  const seconds = BigInt(Math.floor(now / 1000))
  if (seconds < validAfter) return refusals.badCertificate('The certificate is not valid yet.')
  if (seconds >= validBefore) return refusals.badCertificate('The certificate has expired. Have another one signed.')
  for (const [name, value] of Object.entries(criticalOptions)) {
    if (name === 'force-command') continue // the session runs it
    if (name !== 'source-address') {
      return refusals.badCertificate('The certificate has a critical option that this server does not know.')
    }
    if (!admits(value, ip)) {
      return refusals.badCertificate('The certificate is not valid for the address that you connect from.')
    }
  }
  return undefined
}

/** Whether a list of addresses and networks contains `ip`; a malformed list contains nobody. */
function admits(list: string, ip: string): boolean {
  const whole = { 0: '', 4: '/32', 6: '/128' } as const
  const networks = list.split(',').map((each) => `${each}${whole[isIP(each) as 0 | 4 | 6]}`)
  try {
    return compileIpRules(networks.map((network) => ({ action: 'allow', network })))(ip)
  } catch (error) {
    if (error instanceof BadInput) return false
    throw error
  }
}

/** The id of the credential to use: the only one among the principals, or the one that the client gave as its user. */
function credentialNamed(principals: readonly string[], user: string): string | BindRefusal {
  const [first, ...more] = new Set(principals.filter((each) => each.startsWith(CREDENTIAL)))
  if (first === undefined) return refusals.noPrincipal()
  if (user.startsWith(CREDENTIAL)) {
    return user === first || more.includes(user) ? user : refusals.noSuchPrincipal(user)
  }
  return more.length === 0 ? first : refusals.severalPrincipals(first)
}
