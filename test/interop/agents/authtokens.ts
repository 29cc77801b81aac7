/** Credentials of agents that use the wire protocol: authtokens. */
import type { Platform } from '../../support/platform.ts'
import type { Access, Credential } from './driver.ts'

export async function authtokenCredential({ admin }: Platform, body: object = {}): Promise<Credential> {
  const { id, token } = await admin.create('/credentials', body)
  return { id, authtoken: token }
}

export async function authtokenAccess({ agents, ca, authtoken }: Platform): Promise<Access> {
  return { server: agents, ca, authtoken }
}
