/** Composes the control plane, in the order written here: the store, who may use it, and the data planes that serve it. */
import { join } from 'node:path'
import { forgetStatuses } from '../../control-plane/acme/forget-statuses.ts'
import type { OrderTimes } from '../../control-plane/acme/order-times.ts'
import { AnswersWhileDown } from '../../control-plane/mirrors/answers-while-down.ts'
import { AttachedPlanes } from '../../control-plane/mirrors/attached-planes.ts'
import type { CertificatesByName } from '../../control-plane/mirrors/certificate-choice.ts'
import { CertificateFiles } from '../../control-plane/mirrors/certificate-files.ts'
import { mirrorCertificates } from '../../control-plane/mirrors/certificate-mirror.ts'
import { edgeEndpoints } from '../../control-plane/mirrors/edge-endpoints.ts'
import { tunnelGroupIndex } from '../../control-plane/mirrors/group-index.ts'
import { endWithCredentials, endWithSshCertificates } from '../../control-plane/mirrors/session-credentials.ts'
import { bindSecrets } from '../../control-plane/records/bound-secrets.ts'
import { Documents } from '../../control-plane/records/check-documents.ts'
import { AgentCredentials } from '../../control-plane/records/find-agent-credentials.ts'
import { tokenHash } from '../../control-plane/records/find-caller.ts'
import { findSshCertificate } from '../../control-plane/records/find-ssh-certificates.ts'
import { LoginUpkeep } from '../../control-plane/records/login-upkeep.ts'
import { openAuthority } from '../../control-plane/records/own-authority.ts'
import { openProvenNames } from '../../control-plane/records/proven-names.ts'
import { openSealer } from '../../control-plane/records/sealing.ts'
import { openSshHostKey } from '../../control-plane/records/stored-host-key.ts'
import { StoredLogins } from '../../control-plane/records/stored-logins.ts'
import { requestKeyOf } from '../../control-plane/records/stored-request-key.ts'
import { TakenAddresses } from '../../control-plane/records/taken-addresses.ts'
import { type Followed, Follower } from '../../control-plane/store/feed-follower.ts'
import type { StoreLimits } from '../../control-plane/store/limits.ts'
import { lockForServing } from '../../control-plane/store/serve-lock.ts'
import { openStore } from '../../control-plane/store/store.ts'
import { exchangeNodes } from '../../control-plane/traffic/exchange-nodes.ts'
import { brokenEdgesHere } from '../../control-plane/traffic/list-broken-edges.ts'
import { type Period, TrafficHistory } from '../../control-plane/traffic/traffic-counts.ts'
import { trafficOfAll } from '../../control-plane/traffic/traffic-nodes.ts'
import type { Clock } from '../../lib/clock.ts'
import type { IdSource } from '../../lib/ids.ts'
import { limitPartOf } from '../../lib/limits/divided-counters.ts'
import type { Logger } from '../../lib/log/create-log.ts'
import { recordLookUp } from '../../lib/net/record-look-up.ts'
import { RefusedAddresses } from '../../lib/net/refused-addresses.ts'
import { isFirstForm, Sealer } from '../../lib/secrets/seal.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import { threadFile } from '../../lib/threads/thread-file.ts'
import { WorkerPool } from '../../lib/threads/worker-pool.ts'
import { loginCalls } from '../../link/planes/login-calls.ts'
import type { AgentCredential } from '../../model/agent-credential.ts'
import type { AddressHolders } from '../../model/endpoint.ts'
import { ownNames } from '../config/own-names.ts'
import type { OwnNode } from '../config/own-node.ts'
import type { Settings } from '../config/read-settings.ts'

/** `clusterAddress` and `agentAddress` have the node's actual ports, even where the settings leave them to the system. */
export interface ControlPlaneOptions extends OwnNode {
  readonly settings: Settings
  readonly ids: IdSource
  readonly now: Clock
  readonly log: Logger
  readonly version: string
  /** Shorter ones are for tests. */
  readonly storeLimits?: StoreLimits | undefined
  readonly orderTimes?: OrderTimes | undefined
}

export type ControlPlane = Awaited<ReturnType<typeof openControlPlane>>

/** The purpose for which the key of data planes is derived from the key of the database. */
const DATA_PLANES = 'data planes'

/** The prefix of the place of an endpoint with TLS; its name follows. */
const NAMED_PLACE = 'secure:'

const NOBODY: AddressHolders = { edgeId: undefined, reservationId: undefined }

/** The prefix of contexts for what agents carry; nothing else is unsealed for a data plane. */
const OF_AGENTS = 'agents/'

/** Opens the control plane; resolves when data planes may attach. */
export async function openControlPlane(options: ControlPlaneOptions) {
  const { settings, ids, now, log, version, storeLimits: limits } = options
  const opened: (() => Promise<void> | void)[] = []
  const close = async () => {
    for (const each of opened.splice(0).reverse()) await each()
  }
  const follow = async (followed: Followed): Promise<void> => {
    const follower = new Follower({ store, followed, log })
    await follower.start()
    opened.push(() => follower.stop())
  }
  const release = lockForServing(settings.databaseUrl)
  opened.push(() => release())
  const store = await openStore(settings.databaseUrl, { ...(limits && { limits }) }).catch(async (error: unknown) => {
    await close()
    throw error
  })
  opened.push(() => store.close())

  try {
    // Keys and certificates of the server itself.
    const sealer = await openSealer(store, settings.keyFile)
    await bindSecrets(store, sealer)
    const sealingKey = sealer.keyFor(DATA_PLANES)
    const authority = await openAuthority(store, sealer, join(settings.dataDir, 'ca.pem'))
    const requestKey = requestKeyOf(store, sealer, now)
    const hostKey = await openSshHostKey(store, sealer)

    // Certificates in files; data planes are sent them, and need no access to the files.
    const { certificateDir } = settings
    const files = certificateDir === null ? undefined : new CertificateFiles({ folder: certificateDir, now, log })
    files?.start()
    opened.push(() => files?.stop())

    // Documents that people write are checked here, on another thread where that takes long.
    const threads = new WorkerPool(threadFile('control-thread', import.meta.url))
    opened.push(() => threads.close())
    const documents = new Documents(threads)
    const refused = new RefusedAddresses({ log })
    opened.push(() => refused.close())

    // Logins of visitors.
    const logins = new StoredLogins({ store, sealer, ids })
    await follow(logins)
    const upkeep = new LoginUpkeep({ store, now, log })
    upkeep.start()
    opened.push(() => upkeep.stop())

    // Remembered answers, which let agents in again while the database is down.
    const tokens = new AnswersWhileDown<AgentCredential>()
    const inUse = new AnswersWhileDown<AgentCredential>()
    const holders = new AnswersWhileDown<AddressHolders>()
    const agentCredentials = new AgentCredentials(store)
    const inUseNow = (id: string) => inUse.answer(id, () => agentCredentials.current(id))
    const addresses = new TakenAddresses(store)

    // Who may have names outside of our domain.
    const { domain, verifyDomains, dnsServers } = settings
    const proven = verifyDomains
      ? await openProvenNames({ store, domain, lookUp: recordLookUp(dnsServers), now, log })
      : undefined
    const holdersOfName = async (name: string): Promise<AddressHolders> => {
      const held = await addresses.holdersOfName(name)
      // A name was proven when it was reserved, unless an admin reserved it.
      const isHeld = held.edgeId !== undefined || held.reservationId !== undefined || held.wildcard !== undefined
      return isHeld || !proven ? held : { ...held, unproven: await proven.whyNot(name) }
    }
    const holdersOf = async ({ host, port }: { readonly host: string; readonly port: number | undefined }) =>
      (await (port === undefined
        ? holders.answer(host, () => holdersOfName(host))
        : holders.answer(`:${port}`, () => addresses.holdersOfPort(port)))) ?? NOBODY

    // The other nodes on this database, and the data planes of this one.
    const node = {
      id: options.nodeId,
      name: settings.nodeName,
      address: options.clusterAddress ?? '',
      region: settings.region,
      version,
      since: options.nodeSince,
    }
    const agentAddresses = options.agentAddress === null ? [] : [options.agentAddress]
    const cluster =
      options.clusterAddress === null
        ? undefined
        : (await import('../../control-plane/cluster/open-cluster.ts')).openCluster({
            ...{ store, sealer, log, planes: () => planes, history: () => history },
            node: { ...node, agentAddresses },
          })
    const planes: AttachedPlanes = new AttachedPlanes({
      store,
      sealer,
      files,
      log,
      node,
      nodes: cluster,
      checkCredentials: () => credentials.load(),
      tunnelStarted: ({ endpoint }) => {
        if (endpoint?.present.proto !== 'https' || !endpoint.place.startsWith(NAMED_PLACE)) return
        certificates?.endpointStarted(endpoint.place.slice(NAMED_PLACE.length))
      },
      bindRules: {
        credential: inUseNow,
        modules: (owner, bind) => documents.bindModules(owner, bind),
        holders: holdersOf,
        digest: new Sealer(Buffer.from(sealingKey)).digestFor('pools'),
        ...{ domain, log },
        whyTakenElsewhere: async (claim) => cluster?.whyTaken(claim),
      },
      calls: {
        secrets: () => ({
          authority,
          sealingKey,
          sshHostKey: hostKey.privateText.reveal(),
        }),
        findCredential: ({ token }) => tokens.fresh(tokenHash(token), () => agentCredentials.find(new Secret(token))),
        recallCredential: ({ token, sessionId }) =>
          cluster && sessionId !== undefined && !cluster.knows(sessionId) ? undefined : tokens.recall(tokenHash(token)),
        findSshCredential: ({ fingerprint }) => agentCredentials.findSsh(fingerprint),
        findSshCertificate: ({ digest }) => findSshCertificate(store, digest),
        currentCredential: ({ id }) => inUseNow(id),
        openFormerSeal: async ({ text, context }) => {
          if (!context.startsWith(OF_AGENTS)) return undefined
          return isFirstForm(text) ? sealer.openFirstForm(text) : sealer.open(text, context)
        },
        bindModules: async ({ credentialId, proto, opts }) =>
          documents.bindModules((await inUseNow(credentialId))?.ownerId ?? '', { proto, opts }),
        holdersOfName: (host) => holdersOf({ host, port: undefined }),
        holdersOfPort: (port) => holdersOf({ host: domain, port }),
        lookUpPlaces: async (places) => (await cluster?.lookUps.places(places)) ?? [],
        lookUpGroup: async (labels) => (await cluster?.lookUps.group(labels)) ?? [],
        answerNode: async ({ value }) => cluster?.answer(value),
        requestKey: async () => {
          const { certificate, key } = await requestKey()
          return { certificate, key: key.reveal() }
        },
        ...loginCalls(logins),
      },
    })
    opened.push(() => planes.close())
    const history = new TrafficHistory({ read: () => planes.numbers(), now, steady: () => performance.now(), log })
    history.start()
    opened.push(() => history.close())
    const forget = logins.whenEnded((endings) => planes.loginsEnded(endings))
    opened.push(() => forget())
    const credentials = endWithCredentials(store, planes)
    await follow(credentials)
    await follow(endWithSshCertificates(store, planes))

    // From here on other nodes know this one.
    let isPaused = false
    if (cluster) {
      await cluster.start()
      opened.push(() => (isPaused ? cluster.pause() : cluster.close()))
      await follow(cluster.moved())
    }

    // Certificates that this server orders by itself; that begins when data planes can answer challenges.
    const certificates =
      settings.acmeDirectory === ''
        ? undefined
        : (await import('../../control-plane/acme/open-certificates.ts')).openCertificates({
            ...{ store, sealer, ids, now, log, version },
            acme: {
              directory: settings.acmeDirectory,
              email: settings.acmeEmail,
              caFile: settings.acmeCa,
              eabKeyId: settings.acmeEabKeyId,
              eabKey: settings.acmeEabKey,
              ordersPerHour: settings.acmeOrdersPerHour,
              endpointsPerWeek: settings.acmeEndpointsPerWeek,
              dnsCommand: settings.acmeDnsCommand,
              dnsServer: settings.acmeDnsServer,
              dnsKey: settings.acmeDnsKey,
            },
            env: process.env,
            domain: settings.domain,
            ownNames: ownNames(settings),
            whyNotOrder: async (name) => proven?.whyNoLonger(name),
            isInFile: (name) => files?.covers(name) ?? false,
            isOnline: async (name) => {
              const place = NAMED_PLACE + name
              if (planes.directory.holdersOf(place).length > 0) return true
              return ((await cluster?.lookUps.places([place])) ?? []).length > 0
            },
            showChallenge: (challenge) => planes.showChallenge(challenge),
            showElsewhere: async (challenge) => (await cluster?.showChallenge(challenge)) ?? true,
            orderTimes: options.orderTimes,
          })

    // What only lists show.
    const groups = tunnelGroupIndex(store)
    const endpoints = edgeEndpoints({ store, region: settings.region, log })

    return {
      store,
      sealer,
      threads,
      documents,
      refused,
      /** The id of this node; undefined for a node on its own. */
      clusterNodeId: cluster && options.nodeId,
      /** Numbers of the cluster, for the metrics; undefined for a node on its own. */
      clusterMetrics: cluster && (() => cluster.numbers),
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
        opened.push(() => certificates.stop())
      },
      /** Undefined when certificates are not ordered. */
      certificateMetrics: certificates && (() => certificates.numbers()),
      /** Undefined when names need not be proven. */
      proven,
      /** The certificate and key of the server's own authority, in PEM. */
      authority,
      /** Calls `replace` with all certificates by name, now and whenever one of them changes. */
      async followCertificates(replace: (byName: CertificatesByName) => void) {
        const certificates = mirrorCertificates({ store, sealer, files, replace, log })
        opened.push(() => certificates.stop())
        await follow(certificates)
      },
      /** Undefined when no certificates are in files. */
      certificateFileMetrics: files && (() => files.numbers),
      close,
      /** Closes it so that another control plane of this node can take over. */
      async pause() {
        isPaused = true
        await close()
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}
