/** The tokens that an operator chose for the first admin, where they are used. */
import type { Settings } from './read.ts'

export function bootstrapTokens({ bootstrap }: Settings): { apiKey: string | null; authtoken: string | null } {
  return { apiKey: bootstrap.apiKey?.reveal() ?? null, authtoken: bootstrap.authtoken?.reveal() ?? null }
}
