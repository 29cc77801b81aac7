/** Looks up DNS records. */
import { Resolver } from 'node:dns/promises'

export interface RecordLookUp {
  /** The TXT records of a name, each with its parts joined. */
  texts(name: string): Promise<readonly string[]>
  /** The targets of the CNAME record of a name. */
  aliases(name: string): Promise<readonly string[]>
}

/** How long a server may take, in milliseconds, and how many times it is asked. */
const PATIENCE = { timeout: 1500, tries: 2 } as const

/** Codes for names without records. That there are none is an answer; a resolver that does not answer is an error. */
const nothing: ReadonlySet<unknown> = new Set(['ENODATA', 'ENOTFOUND'])

/** Asks these servers, `address` or `address:port`, in order; those of this machine when there are none. */
export function recordLookUp(servers: readonly string[]): RecordLookUp {
  const resolver = new Resolver(PATIENCE)
  if (servers.length > 0) resolver.setServers(servers)
  return {
    texts: async (name) => (await orNothing(resolver.resolveTxt(name))).map((parts) => parts.join('')),
    aliases: (name) => orNothing(resolver.resolveCname(name)),
  }
}

async function orNothing<T>(asked: Promise<T[]>): Promise<T[]> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof Error && 'code' in error && nothing.has(error.code)) return []
    throw error
  }
}
