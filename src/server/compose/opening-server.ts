/** What every step of starting a server of one process is given: the node that it is, and what it listens on. */
import { Descriptors } from '../../lib/files/descriptors.ts'
import { packageVersion } from '../../lib/files/package-file.ts'
import { IdSource } from '../../lib/ids.ts'
import { withKnownPorts } from '../config/known-ports.ts'
import { plainListeners } from '../config/listeners.ts'
import { newNode, ownNode } from '../config/own-node.ts'
import type { Settings } from '../config/read-settings.ts'
import type { ServerOptions } from './open-server.ts'

export type OpeningServer = Awaited<ReturnType<typeof beginServer>>

/** Watches file descriptors, and opens listeners whose ports others are told. `opened` takes how to close what each step opens. */
export async function beginServer(
  settings: Settings,
  { log, listeners = plainListeners(settings), planeCount = 1, ...given }: ServerOptions,
  opened: AsyncDisposableStack,
) {
  const now = Date.now
  const ids = new IdSource({ now })
  const descriptors = given.descriptors ?? new Descriptors({ log })
  if (!given.descriptors) await descriptors.start()
  opened.defer(() => descriptors.stop())
  const isShared = planeCount > 1
  const known = await withKnownPorts(listeners, settings, { descriptors, isShared })
  opened.defer(async () => known.close())
  return {
    ...{ listeners, planeCount, isShared, opened },
    context: { settings, ids, now, log, descriptors, version: packageVersion() },
    publicListeners: { ...listeners, ...known.listeners },
    node: ownNode(newNode({ ids, now }), settings, known.ports),
  }
}
