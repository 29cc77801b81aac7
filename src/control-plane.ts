/** Composes the control plane: what is stored, who may use it, and which data planes serve it, in the order written here. */
import { join } from 'node:path'
import { forgetStatuses } from './acme/forget-statuses.ts'
import type { OrderTimes } from './acme/timing.ts'
import { ownNames } from './config/own-names.ts'
import type { OwnNode } from './config/own-node.ts'
import type { Settings } from './config/read.ts'
import { TakenAddresses } from './control/addresses.ts'
import { AgentCredentials } from './control/agent-credentials.ts'
import { AttachedPlanes } from './control/attached-planes.ts'
import { openAuthority } from './control/authority.ts'
import { bindSecrets } from './control/bound-secrets.ts'
import { brokenEdgesHere } from './control/broken-edges.ts'
import type { CertificatesByName } from './control/certificate-choice.ts'
import { CertificateFiles } from './control/certificate-files.ts'
import { Documents } from './control/documents.ts'
import { EdgeEndpoints } from './control/edge-endpoints.ts'
import { exchangeNodes } from './control/exchange-nodes.ts'
import { type Followed, Follower } from './control/follower.ts'
import { LiveCertificates } from './control/live-certificates.ts'
import { LiveCredentials } from './control/live-credentials.ts'
import { LiveSshCertificates } from './control/live-ssh-certificates.ts'
import { LoginUpkeep } from './control/login-upkeep.ts'
import { tokenHash } from './control/principal.ts'
import { openProvenNames } from './control/proven-names.ts'
import { Remembered } from './control/remembered.ts'
import { requestKeyOf } from './control/request-key.ts'
import { openSealer } from './control/sealing.ts'
import { findSshCertificate } from './control/ssh-certificates.ts'
import { openSshHostKey } from './control/ssh-host-key.ts'
import { StoredLogins } from './control/stored-logins.ts'
import { type Period, TrafficHistory } from './control/traffic-history.ts'
import { trafficOfAll } from './control/traffic-nodes.ts'
import { StoredTunnelGroups } from './control/tunnel-groups.ts'
import type { Clock } from './lib/clock.ts'
import type { IdSource } from './lib/ids.ts'
import { limitPartOf } from './lib/limits/divided-counters.ts'
import type { Logger } from './lib/log/log.ts'
import { recordLookUp } from './lib/net/record-look-up.ts'
import { isFirstForm } from './lib/secrets/seal.ts'
import { Secret } from './lib/secrets/secret.ts'
import type { AgentCredential } from './model/agent-credential.ts'
import type { AddressHolders } from './model/endpoint.ts'
import { loginCalls } from './planes/linked-logins.ts'
import { RefusedLog } from './planes/refused-log.ts'
import type { StoreLimits } from './store/limits.ts'
import { lockForServing } from './store/serve-lock.ts'
import { openStore } from './store/store.ts'

/** `clusterAddress` and `agentAddress` have the ports that the node got, where settings leave them to the system. */
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

/** What the key of data planes derives from the key of the database for. */
const DATA_PLANES = 'data planes'

/** What the place of an endpoint with TLS begins with; its name follows. */
const NAMED_PLACE = 'secure:'

const NOBODY: AddressHolders = { edgeId: undefined, reservationId: undefined }

/** What agents carry is sealed for contexts that begin with this; nothing else is opened for a data plane. */
const OF_AGENTS = 'agents/'

/** Opens what is stored; resolves when data planes may attach. */
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
    // What is kept.
    const sealer = await openSealer(store, settings.keyFile)
    await bindSecrets(store, sealer)
    const authority = await openAuthority(store, sealer, join(settings.dataDir, 'ca.pem'))
    const requestKey = requestKeyOf(store, sealer, now)
    const hostKey = await openSshHostKey(store, sealer)

    // Certificates that others look after; data planes are sent them, and need not be able to read them.
    const { certificateDir } = settings
    const files = certificateDir === null ? undefined : new CertificateFiles({ folder: certificateDir, now, log })
    files?.start()
    opened.push(() => files?.stop())

    // What people write is checked here, and off the event loop where that takes long.
    const documents = new Documents()
    opened.push(() => documents.close())
    const refused = new RefusedLog({ log })
    opened.push(() => refused.close())

    // Who logged in, and until when.
    const logins = new StoredLogins({ store, sealer, ids })
    await follow(logins)
    const upkeep = new LoginUpkeep({ store, now, log })
    upkeep.start()
    opened.push(() => upkeep.stop())

    // What lets agents in again while the database is away.
    const tokens = new Remembered<AgentCredential>()
    const inUse = new Remembered<AgentCredential>()
    const holders = new Remembered<AddressHolders>()
    const agentCredentials = new AgentCredentials(store)
    const inUseNow = (id: string) => inUse.answer(id, () => agentCredentials.current(id))
    const addresses = new TakenAddresses(store)

    // Whose the names outside of our domain are.
    const { domain, verifyDomains, dnsServers } = settings
    const proven = verifyDomains
      ? await openProvenNames({ store, domain, lookUp: recordLookUp(dnsServers), now, log })
      : undefined
    const holdersOfName = async (name: string): Promise<AddressHolders> => {
      const held = await addresses.holdersOfName(name)
      // Who reserved a name has proven it, or is an admin.
      const isHeld = held.edgeId !== undefined || held.reservationId !== undefined || held.wildcard !== undefined
      return isHeld || !proven ? held : { ...held, unproven: await proven.whyNot(name) }
    }

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
        : (await import('./cluster/open-cluster.ts')).openCluster({
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
      calls: {
        secrets: () => ({
          authority,
          sealingKey: sealer.keyFor(DATA_PLANES),
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
        holdersOfName: async (name) => (await holders.answer(name, () => holdersOfName(name))) ?? NOBODY,
        holdersOfPort: async (port) =>
          (await holders.answer(`:${port}`, () => addresses.holdersOfPort(port))) ?? NOBODY,
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
    const credentials = new LiveCredentials(store, planes)
    await follow(credentials)
    await follow(new LiveSshCertificates(store, planes))

    // From here on other nodes know of this one.
    let isPaused = false
    if (cluster) {
      await cluster.start()
      opened.push(() => (isPaused ? cluster.pause() : cluster.close()))
      await follow(cluster.moved())
    }

    // Certificates that this server gets by itself; work begins when data planes can answer for it.
    const certificates =
      settings.acmeDirectory === ''
        ? undefined
        : (await import('./acme/open-certificates.ts')).openCertificates({
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
            otherNodes: () => cluster?.others.length ?? 0,
            orderTimes: options.orderTimes,
          })

    // What lists show.
    const groups = new StoredTunnelGroups(store)
    const endpoints = new EdgeEndpoints({ store, region: settings.region, log })

    return {
      store,
      sealer,
      documents,
      refused,
      /** This node, where there may be others. */
      clusterNodeId: cluster && options.nodeId,
      /** This node among others, for the metrics; undefined where there are none. */
      clusterNumbers: cluster && (() => cluster.numbers),
      /** What this node has of limits that all nodes share. */
      limitPart: () =>
        limitPartOf(
          options.nodeId,
          (cluster?.others ?? []).map(({ nodeId }) => nodeId),
        ),
      logins,
      requestKey,
      planes,
      /** How traffic went at all nodes. */
      traffic: (period: Period) =>
        trafficOfAll(period, { name: settings.nodeName, own: (of) => history.points(of), cluster, log }),
      /** Edges that refuse traffic, and why. */
      brokenEdges: () => brokenEdgesHere(planes),
      /** The nodes that can be asked about exchanges: this one, and all others that are online. */
      exchangeNodes: () => exchangeNodes(options.nodeId, planes, cluster),
      groups,
      presence: endpoints.beside(cluster?.presence() ?? planes.presence),
      /** What an earlier control plane of this node told the others is put right; data planes have attached by now. */
      reconcile: async () => cluster?.reconcile(),
      /** This node drains. */
      leaving: async () => cluster?.leaving(),
      /** The fingerprint of the key that the SSH gateway shows of itself. */
      sshHostKey: hostKey.fingerprint,
      /** Reads what only the API shows; data planes need not wait for it. */
      async readLists() {
        await follow(groups)
        await follow(endpoints)
      },
      /** Names get their certificates by themselves from here on; data planes have attached by now. */
      async orderCertificates() {
        if (!certificates) return forgetStatuses(store)
        // Names that have a file are not ordered.
        await files?.ready()
        await follow(certificates.wanted)
        await certificates.start()
        opened.push(() => certificates.stop())
      },
      /** Undefined where certificates are not ordered. */
      certificateNumbers: certificates && (() => certificates.numbers()),
      /** Undefined where names need not be proven. */
      proven,
      /** The certificate and key of the server's own authority, in PEM. */
      authority,
      /** Calls `replace` with all certificates by name, now and whenever one of them changes. */
      async followCertificates(replace: (byName: CertificatesByName) => void) {
        const live = new LiveCertificates({ store, sealer, files, replace, log })
        const forget = files?.whenChanged(() => live.filesChanged())
        opened.push(() => forget?.())
        await follow(live)
      },
      /** Undefined where no certificates are files. */
      certificateFileNumbers: files && (() => files.numbers),
      close,
      /** Closes it for another control plane of this node. */
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
