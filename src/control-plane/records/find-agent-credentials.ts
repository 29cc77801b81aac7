/** Looks up the credentials of agents, authtokens and SSH keys, with their current ACL. */
import type { Secret } from '../../lib/secrets/secret.ts'
import type { AgentCredential } from '../../model/agent-credential.ts'
import { AUTHTOKENS, credentials } from '../resources/credentials.ts'
import { fieldsOf } from '../resources/resource.ts'
import { SSH_KEYS, sshCredentials } from '../resources/ssh-credentials.ts'
import { AskedTogether } from '../store/asked-together.ts'
import { bindGatherMs, gatherMs } from '../store/gather-time.ts'
import type { OwnedResource, Reader } from '../store/reader.ts'
import type { Store } from '../store/store.ts'
import { tokenHash, wellFormedToken } from './find-caller.ts'

/** How long a lookup may take, in milliseconds: an agent must get the error before its own authentication timeout. */
export const LOOKUP_MS = 5000

type Found = AgentCredential | undefined

/** The kinds of credentials that start sessions. */
const kinds: ReadonlySet<string> = new Set([credentials.kind, sshCredentials.kind])

export class AgentCredentials {
  readonly #byToken: AskedTogether<string, Found>
  readonly #byKey: AskedTogether<string, Found>
  readonly #byId: AskedTogether<string, Found>

  constructor(store: Store) {
    const together = (
      find: (reader: Reader, keys: readonly string[]) => Promise<[string, OwnedResource][]>,
      apartMs = gatherMs,
    ) =>
      new AskedTogether(
        async (keys: readonly string[]) => {
          const found = new Map(await store.read((reader) => find(reader, [...new Set(keys)]), { withinMs: LOOKUP_MS }))
          return (key) => usable(found.get(key))
        },
        { apartMs },
      )
    const heldIn = (scope: string) =>
      together(async (reader, keys) => (await reader.holdersWithOwners(scope, keys)).map((each) => [each.key, each]))
    this.#byToken = heldIn(AUTHTOKENS)
    this.#byKey = heldIn(SSH_KEYS)
    this.#byId = together(
      async (reader, ids) => (await reader.withOwners(ids)).map((each) => [each.held.id, each]),
      bindGatherMs,
    )
  }

  /** The credential with this token; undefined when it is not valid. */
  async find(token: Secret): Promise<Found> {
    const text = token.reveal()
    return wellFormedToken(text) ? this.#byToken.ask(tokenHash(text)) : undefined
  }

  /** The credential with this public key fingerprint; undefined when there is none. */
  findSsh(fingerprint: string): Promise<Found> {
    return this.#byKey.ask(fingerprint)
  }

  /** The same credential, looked up again: its ACL may have changed, or it may be gone. */
  current(id: string): Promise<Found> {
    return this.#byId.ask(id)
  }
}

/** Credentials of an inactive owner are invalid, as are its keys. */
function usable(found: OwnedResource | undefined): Found {
  if (!found) return undefined
  const { held, owner } = found
  if (!kinds.has(held.kind) || owner.fields.active === false) return undefined
  return { id: held.id, acl: fieldsOf(credentials, held).acl, ownerId: owner.id }
}
