/** Reveals the tokens that an operator chose for the first admin, for the code that stores them. */
import type { Settings } from './read-settings.ts'

export function bootstrapTokens({ bootstrap }: Settings): { apiKey: string | null; authtoken: string | null } {
  return { apiKey: bootstrap.apiKey?.reveal() ?? null, authtoken: bootstrap.authtoken?.reveal() ?? null }
}
