/** What every step of opening a control plane is given: its store, and the keys with which it is read. */
import { join } from 'node:path'
import type { OrderTimes } from '../../control-plane/acme/order-times.ts'
import type { Cluster } from '../../control-plane/cluster/cluster.ts'
import type { AttachedPlanes } from '../../control-plane/mirrors/attached-planes.ts'
import type { CertificateFiles } from '../../control-plane/mirrors/certificate-files.ts'
import { bindSecrets } from '../../control-plane/records/bound-secrets.ts'
import type { Documents } from '../../control-plane/records/check-documents.ts'
import type { ProvenNames } from '../../control-plane/records/proven-names.ts'
import { openSealer } from '../../control-plane/records/sealing.ts'
import { openAuthority, openSshHostKey, requestKeyOf } from '../../control-plane/records/server-keys.ts'
import { type Followed, Follower } from '../../control-plane/store/feed-follower.ts'
import type { StoreLimits } from '../../control-plane/store/limits.ts'
import { lockForServing } from '../../control-plane/store/serve-lock.ts'
import { openStore } from '../../control-plane/store/store.ts'
import { isOpenToOthers } from '../../lib/files/open-to-others.ts'
import { LiveSettings } from '../config/live-settings.ts'
import type { OwnNode } from '../config/own-node.ts'
import type { ServerContext } from './server-context.ts'

/** `clusterAddress` and `agentAddress` have the node's actual ports, even where the settings leave them to the system. */
export interface ControlPlaneOptions extends OwnNode, Omit<ServerContext, 'descriptors'> {
  /** Shorter ones are for tests. */
  readonly storeLimits?: StoreLimits | undefined
  readonly orderTimes?: OrderTimes | undefined
}

export type OpeningControl = Awaited<ReturnType<typeof beginControl>>

/** What the steps open, in their order. */
export interface ControlParts {
  /** Undefined when no certificates are in files. */
  readonly files: CertificateFiles | undefined
  readonly documents: Documents
  /** Undefined when names need not be proven. */
  readonly proven: ProvenNames | undefined
  /** Undefined for a node on its own. */
  readonly cluster: Cluster | undefined
  readonly planes: AttachedPlanes
}

/** The purpose for which the key of data planes is derived from the key of the database. */
const DATA_PLANES = 'data planes'

/** Locks and opens the store. `opened` takes how to close what each step opens. */
export async function beginControl(options: ControlPlaneOptions, opened: AsyncDisposableStack) {
  const { settings, now, log, storeLimits: limits } = options
  const release = lockForServing(settings.databaseUrl)
  opened.defer(() => release())
  const store = await openStore(settings.databaseUrl, { ...(limits && { limits }) })
  opened.defer(() => store.close())
  const sealer = await openSealer(store, settings.keyFile)
  const open = [settings.keyFile, settings.dataDir].filter((path) => isOpenToOthers(path))
  if (open.length > 0) log.warn({ open }, 'other users of this machine have access to secrets; use `chmod o=` there')
  await bindSecrets(store, sealer)
  return {
    ...options,
    ...{ opened, store, sealer },
    live: new LiveSettings(settings),
    sealingKey: sealer.keyFor(DATA_PLANES),
    authority: await openAuthority(store, sealer, join(settings.dataDir, 'ca.pem')),
    requestKey: requestKeyOf(store, sealer, now),
    hostKey: await openSshHostKey(store, sealer),
    /** Follows the changes of what is stored; resolves once all that is stored by now was seen. */
    follow: async (followed: Followed): Promise<void> => {
      const follower = new Follower({ store, followed, log })
      await follower.start()
      opened.defer(() => follower.stop())
    },
  }
}
