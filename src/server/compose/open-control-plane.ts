/** Composes the control plane, in the order written here: the store, who may use it, and the data planes that serve it. */
import type { Duplex } from 'node:stream'
import { forgetStatuses } from '../../control-plane/acme/forget-statuses.ts'
import { AttachedPlanes } from '../../control-plane/mirrors/attached-planes.ts'
import type { CertificatesByName } from '../../control-plane/mirrors/certificate-choice.ts'
import { CertificateFiles } from '../../control-plane/mirrors/certificate-files.ts'
import { mirrorCertificates } from '../../control-plane/mirrors/certificate-mirror.ts'
import { edgeEndpoints } from '../../control-plane/mirrors/edge-endpoints.ts'
import { tunnelGroupIndex } from '../../control-plane/mirrors/group-index.ts'
import { endWithCredentials, endWithSshCertificates } from '../../control-plane/mirrors/session-credentials.ts'
import { Documents } from '../../control-plane/records/check-documents.ts'
import { heldNames } from '../../control-plane/records/held-names.ts'
import { LoginUpkeep } from '../../control-plane/records/login-upkeep.ts'
import { StoredLogins } from '../../control-plane/records/stored-logins.ts'
import { exchangeNodes } from '../../control-plane/traffic/exchange-nodes.ts'
import { brokenEdgesHere } from '../../control-plane/traffic/list-broken-edges.ts'
import { type Period, TrafficHistory } from '../../control-plane/traffic/traffic-counts.ts'
import { trafficOfAll } from '../../control-plane/traffic/traffic-nodes.ts'
import { limitPartOf } from '../../lib/limits/divided-counters.ts'
import { RefusedAddresses } from '../../lib/net/refused-addresses.ts'
import { Sealer } from '../../lib/secrets/seal.ts'
import { threadFile } from '../../lib/threads/thread-file.ts'
import { WorkerPool } from '../../lib/threads/worker-pool.ts'
import { loginCalls } from '../../link/planes/login-calls.ts'
import { keptNames } from '../config/own-names.ts'
import { openAdmission, openNames } from './open-admission.ts'
import { openAll } from './open-all.ts'
import { openOrders } from './open-orders.ts'
import { beginControl, type ControlPlaneOptions } from './opening-control.ts'

export type ControlPlane = Awaited<ReturnType<typeof openControlPlane>>

/** Opens the control plane; resolves when data planes may attach. */
export function openControlPlane(options: ControlPlaneOptions) {
  return openAll(async (opened) => {
    // The store first: no other server may serve it, and everything else is read from it.
    const control = await beginControl(options, opened)
    const { settings, ids, now, log, version, store, sealer, sealingKey, authority, requestKey, hostKey, follow } =
      control

    // Certificates in files; data planes are sent them, and need no access to the files.
    const { certificateDir } = settings
    const files = certificateDir === null ? undefined : new CertificateFiles({ folder: certificateDir, now, log })
    files?.start()
    opened.defer(() => files?.stop())

    // D105: names by which callers and agents reach the server, and who has one of them from before.
    const kept = control.live.derive(keptNames)
    const warnOfKept = async () => {
      const held = await heldNames(store, kept())
      if (held.length > 0) log.warn({ held }, 'names of this server itself belong to edges or reservations: move them')
    }
    await warnOfKept()
    control.live.whenChanged(() => {
      warnOfKept().catch((err: unknown) => log.debug({ err }, 'cannot look for own names'))
    })

    // Documents that people write are checked here, on another thread where that takes long.
    const threads = new WorkerPool(threadFile('control-thread', import.meta.url))
    opened.defer(() => threads.close())
    const documents = new Documents(threads)
    const refused = new RefusedAddresses({ log })
    opened.defer(() => refused.close())

    // Logins of visitors.
    const logins = new StoredLogins({ store, sealer, ids })
    await follow(logins)
    const upkeep = new LoginUpkeep({ store, now, log })
    upkeep.start()
    opened.defer(() => upkeep.stop())

    // The other nodes on this database, if there may be any. They are asked from here on, and know this one when it starts.
    const node = {
      id: options.nodeId,
      name: settings.nodeName,
      address: options.clusterAddress ?? '',
      region: settings.region,
      version,
      since: options.nodeSince,
    }
    const agentAddresses = options.agentAddress === null ? [] : [options.agentAddress]
    const clustered =
      options.clusterAddress === null
        ? undefined
        : (await import('./open-cluster.ts')).openCluster({
            ...{ store, sealer, authority, log, node: { ...node, agentAddresses } },
            databaseUrl: settings.databaseUrl,
          })
    const cluster = clustered?.cluster

    // The data planes of this node, and what they ask: who may log in, and who may have which address.
    const proven = await openNames(control)
    const admission = openAdmission(control, { documents, proven, cluster })
    const planes = new AttachedPlanes({
      ...{ store, sealer, files, log, node, nodes: cluster },
      checkCredentials: (attached) => endWithCredentials(store, attached).load(),
      bindRules: {
        ...admission.bindRules,
        digest: new Sealer(Buffer.from(sealingKey)).digestFor('pools'),
        isKeptName: (name) => kept().has(name),
        ...{ domain: settings.domain, log },
      },
      calls: {
        secrets: () => ({ authority, sealingKey, sshHostKey: hostKey.privateText.reveal() }),
        ...admission.calls,
        requestKey: async () => {
          const { certificate, key } = await requestKey()
          return { certificate, key: key.reveal() }
        },
        ...loginCalls(logins),
      },
    })
    opened.defer(() => planes.close())
    const history = new TrafficHistory({ read: () => planes.metrics(), now, steady: () => performance.now(), log })
    planes.whenJoined((metrics) => history.joined(metrics))
    history.start()
    opened.defer(() => history.close())
    const forget = logins.whenEnded((endings) => planes.loginsEnded(endings))
    opened.defer(() => forget())
    await follow(endWithCredentials(store, planes))
    await follow(endWithSshCertificates(store, planes))

    // From here on other nodes know this one.
    let isPaused = false
    if (clustered) {
      clustered.attach({ planes, history })
      const endKeeper = await clustered.start()
      opened.defer(() => (isPaused ? clustered.cluster.pause() : clustered.cluster.close()))
      opened.defer(() => endKeeper())
      opened.defer(() => clustered.closeCalls())
      await follow(clustered.cluster.moved())
    }

    // Certificates that this server orders by itself; that begins when data planes can answer challenges.
    const certificates = await openOrders(control, { files, proven, cluster, planes })

    // What only lists show.
    const groups = tunnelGroupIndex(store)
    const endpoints = edgeEndpoints({ store, region: settings.region, log })

    return {
      store,
      /** The settings that may change while it runs; shared with the API. */
      live: control.live,
      sealer,
      threads,
      documents,
      refused,
      /** The id of this node; undefined for a node on its own. */
      clusterNodeId: cluster && options.nodeId,
      /** Numbers of the cluster, for the metrics; undefined for a node on its own. */
      clusterMetrics: cluster && (() => cluster.metrics),
      /** This node's share of limits that all nodes share. */
      limitPart: () =>
        limitPartOf(
          options.nodeId,
          (cluster?.others ?? []).map(({ nodeId }) => nodeId),
        ),
      logins,
      requestKey,
      planes,
      /** The traffic history of all nodes. */
      traffic: (period: Period) =>
        trafficOfAll(period, { name: settings.nodeName, own: (of) => history.points(of), cluster, log }),
      /** Edges that refuse traffic, and why. */
      brokenEdges: () => brokenEdgesHere(planes),
      /** The nodes that can be asked about exchanges: this one, and all others that are online. */
      exchangeNodes: () => exchangeNodes(options.nodeId, planes, cluster),
      groups,
      presence: endpoints.beside(cluster?.presence() ?? planes.presence),
      /** Corrects what an earlier control plane of this node wrote for other nodes; data planes must have attached. */
      reconcile: async () => cluster?.reconcile(),
      /** Takes a connection of a data plane with calls of other nodes. */
      takeCalls: (connection: Duplex) => (clustered ? clustered.takeCalls(connection) : connection.destroy()),
      /** Tells other nodes that this node drains. */
      leaving: async () => cluster?.leaving(),
      /** The fingerprint of the SSH gateway's host key. */
      sshHostKey: hostKey.fingerprint,
      /** Reads what only the API shows, for which data planes do not wait. */
      async readLists() {
        await follow(groups)
        await follow(endpoints)
      },
      /** Begins to order certificates; data planes must have attached. */
      async orderCertificates() {
        if (!certificates) return forgetStatuses(store)
        // No certificate is ordered for a name that has a file.
        await files?.ready()
        await follow(certificates.wanted)
        await certificates.start()
        opened.defer(() => certificates.stop())
      },
      /** Undefined when certificates are not ordered. */
      certificateMetrics: certificates && (() => certificates.metrics()),
      /** Undefined when names need not be proven. */
      proven,
      /** The certificate and key of the server's own authority, in PEM. */
      authority,
      /** Calls `replace` with all certificates by name, now and whenever one of them changes. */
      async followCertificates(replace: (byName: CertificatesByName) => void) {
        const certificates = mirrorCertificates({ store, sealer, files, replace, log })
        opened.defer(() => certificates.stop())
        await follow(certificates)
      },
      /** Undefined when no certificates are in files. */
      certificateFileMetrics: files && (() => files.metrics),
      close: () => opened.disposeAsync(),
      /** Closes it so that another control plane of this node can take over. */
      async pause() {
        isPaused = true
        await opened.disposeAsync()
      },
    }
  })
}
