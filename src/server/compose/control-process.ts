/** The control process: the control plane, with a listener for data planes, and the management API. */
import { createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { makeFirstUser } from '../../control-plane/records/manage-users.ts'
import { packageVersion } from '../../lib/files/package-file.ts'
import { IdSource } from '../../lib/ids.ts'
import { socketChannel } from '../../link/calls/plane-channel.ts'
import { callsPath } from '../../link/planes/control-connection.ts'
import type { Settings } from '../config/read-settings.ts'
import type { ControlGiven, StartedControl } from '../supervisor/control-child.ts'
import { openAll } from './open-all.ts'
import { openControlPlane } from './open-control-plane.ts'
import { openManagementApi } from './open-management-api.ts'

/** How long a new control process waits for the workers to attach before it serves without some, in milliseconds. */
const ATTACH_MS = 5000

/** How long callers of the API may take to finish before another control process takes over, in milliseconds. */
const PAUSE_MS = 5000

/** The version of the loaded code; when this process starts again, another version may be on disk. */
const version = packageVersion()

/** Resolves once the API serves. */
export function startControl(settings: Settings, given: ControlGiven): Promise<StartedControl> {
  const { log, descriptors, listeners, linkPath, node } = given
  const now = Date.now
  const ids = new IdSource({ now })
  return openAll(async (opened) => {
    // The control plane, and the listeners for the workers.
    const control = await openControlPlane({ ...node, settings, ids, now, log, version })
    let isPaused = false
    opened.defer(() => (isPaused ? control.pause() : control.close()))
    const workerServer = createServer((socket) => control.planes.take(socketChannel(socket)))
    const calls = createServer((socket) => control.takeCalls(socket))
    for (const [server, path] of [
      [calls, callsPath(linkPath)],
      [workerServer, linkPath],
    ] as const) {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen(path, resolve)
      })
      opened.defer(() => void server.close())
    }
    given.onListening()

    // The API, once agents and visitors are served; otherwise it would report the server as ready too early.
    await control.readLists()
    const planeAddresses = await given.workersReady
    await Promise.race([control.planes.whenReady(settings.workers), pause(ATTACH_MS, undefined, { ref: false })])
    control
      .reconcile()
      .catch((err: unknown) =>
        log.warn({ err }, 'cannot correct the rows of this node in the database; other nodes may see stale sessions'),
      )
    const api = await openManagementApi({
      ...{ settings, ids, now, log, descriptors, version },
      ...{ listeners, control, planeAddresses, supervisor: given },
      publicHttpsPort: settings.publicHttpsPort || portOf(planeAddresses.https),
    })
    let closing: Promise<void> | undefined
    opened.defer(() => {
      closing ??= api.close()
      return closing
    })

    // Last, since its result is shown once.
    const firstStart = await makeFirstUser({ store: control.store, ids, now }, settings.bootstrap)
    api.isServing = true
    const { addresses } = api
    let inUse = settings
    const stopping = (): void => {
      if (!api.isServing) return
      api.isServing = false
      log.info('server stopping')
    }
    log.info({ ...addresses, database: control.store.dialect, region: settings.region }, 'server ready')
    await control.orderCertificates()
    return {
      addresses: { api: addresses.api, metrics: addresses.metrics },
      sshHostKey: control.sshHostKey,
      firstStart,
      use(next) {
        inUse = next
        api.use(next)
      },
      stopping,
      draining() {
        stopping()
        control
          .leaving()
          .catch((err: unknown) => log.debug({ err }, 'cannot tell other nodes that this node is leaving'))
        // The API closes first, as in one process; calls under way are answered.
        closing ??= api.close()
      },
      async pause() {
        api.isServing = false
        api.use({ ...inUse, drainTimeoutMs: Math.min(inUse.drainTimeoutMs, PAUSE_MS) })
        isPaused = true
        await opened.disposeAsync()
      },
      async stop() {
        api.isServing = false
        await opened.disposeAsync()
        log.info('server stopped')
      },
    }
  })
}

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(':') + 1))
}
