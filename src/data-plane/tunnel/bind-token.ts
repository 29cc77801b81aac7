/** The token of a bind: with it an agent gets the same address and tunnel id again, even from a new process. */
import { isId } from '../../lib/ids.ts'
import { openFacts, type Seal, sealFacts } from './sealed.ts'

export interface BindToken {
  readonly credentialId: string
  readonly tunnelId: string
  /** When the tunnel was first started, in milliseconds since 1970. */
  readonly startedAt: number
  readonly proto: string
  readonly host: string
  /** TCP only. */
  readonly port: number | undefined
}

export function sealBindToken(seal: Seal, { port, ...token }: BindToken): string {
  return sealFacts(seal, 'bind', { ...token, ...(port !== undefined && { port }) })
}

/** The token in `text`, if it belongs to the same credential and protocol; an invalid one counts as none. */
export async function openBindToken(
  seal: Seal,
  text: string,
  { credentialId, proto }: Pick<BindToken, 'credentialId' | 'proto'>,
): Promise<BindToken | undefined> {
  const facts = await openFacts(seal, 'bind', text)
  if (facts?.credentialId !== credentialId || facts.proto !== proto) return undefined
  const { tunnelId, startedAt, host, port } = facts
  if (typeof tunnelId !== 'string' || !isId(tunnelId, 'tn_')) return undefined
  if (typeof startedAt !== 'number' || typeof host !== 'string') return undefined
  if (port !== undefined && typeof port !== 'number') return undefined
  return { credentialId, tunnelId, startedAt, proto, host, port }
}
