/** Ends sessions whose credential is no longer valid. */
import { AgentCredentials } from '../records/find-agent-credentials.ts'
import { botUsers } from '../resources/bot-users.ts'
import { credentials } from '../resources/credentials.ts'
import { sshCredentials } from '../resources/ssh-credentials.ts'
import { sshUserCertificates } from '../resources/ssh-user-certificates.ts'
import { users } from '../resources/users.ts'
import { changedIds } from '../store/feed.ts'
import type { Followed } from '../store/feed-follower.ts'
import type { Store } from '../store/store.ts'
import type { AttachedPlanes } from './attached-planes.ts'

/** Lists and ends live sessions by what they logged in with. */
type CredentialSessions = Pick<
  AttachedPlanes,
  'credentialsInUse' | 'endSessionsOf' | 'certificatesInUse' | 'endSessionsBy'
>

const credentialKinds = [credentials.kind, sshCredentials.kind]
const ownerKinds = [users.kind, botUsers.kind]

/** How many certificates are looked up in one statement. */
const AT_A_TIME = 500

/**
 * For a credential that was deleted, or whose owner was deleted or made inactive (D25, D65).
 *
 * Not a mirror, and neither is the function below: nothing is sent while what live sessions use is valid.
 */
export function endWithCredentials(store: Store, sessions: CredentialSessions): Followed {
  const valid = new AgentCredentials(store)
  const check = async (ids: Iterable<string>): Promise<void> => {
    const one = async (id: string): Promise<void> => {
      // Data planes are told whether or not it is in use: they may know of connections that the directory does not list.
      if (await valid.current(id)) return
      sessions.endSessionsOf(id, 'its credential was deleted, or its owner is inactive')
    }
    await Promise.all([...ids].map(one))
  }
  return {
    load: () => check(sessions.credentialsInUse()),
    async apply(changes) {
      const touched = new Set(changedIds(changes, credentialKinds))
      // When an owner is deleted, each of its credentials has a change of its own in the feed.
      for (const owner of changedIds(changes, ownerKinds)) {
        for (const { id } of await store.read((reader) => reader.ownedBy(owner))) touched.add(id)
      }
      await check(touched)
    },
  }
}

/** For SSH certificates that were deleted. An authority cannot be deleted before its certificates. */
export function endWithSshCertificates(store: Store, sessions: CredentialSessions): Followed {
  const check = async (ids: readonly string[]): Promise<void> => {
    for (let at = 0; at < ids.length; at += AT_A_TIME) {
      const some = ids.slice(at, at + AT_A_TIME)
      const there = await store.read((reader) => reader.kinds(some))
      for (const id of some) if (!there.has(id)) sessions.endSessionsBy(id, 'its SSH certificate was deleted')
    }
  }
  return {
    load: () => check([...sessions.certificatesInUse()]),
    async apply(changes) {
      const inUse = sessions.certificatesInUse()
      await check(changedIds(changes, [sshUserCertificates.kind]).filter((id) => inUse.has(id)))
    },
  }
}
