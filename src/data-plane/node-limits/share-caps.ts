/** Makes the caps of a listener hold for the whole node, however visitors are spread over its planes. */
import type { CapNews } from '../../lib/net/cap-news.ts'
import type { ConnectionCaps } from '../../lib/net/connection-caps.ts'
import { GatheredChanges } from './gather-changes.ts'
import type { WorkerPeers } from './worker-peers.ts'

/** Most sources in one message. */
const MAX_SOURCES = 1000

/**
 * Gives a function that stops sharing. Until then planes tell each other what is open and what they took of each rate, and every
 * plane counts that as its own and applies the whole limit.
 */
export function shareCaps(
  peers: WorkerPeers,
  caps: Pick<ConnectionCaps, 'door' | 'share' | 'news' | 'allNews' | 'heard' | 'lost'>,
): () => void {
  const name = `caps.${caps.door}` as const
  let urgent: NodeJS.Immediate | undefined
  const gathering = new GatheredChanges(() => {
    clearImmediate(urgent)
    urgent = undefined
    const news = caps.news()
    if (news) for (const part of parts(news)) peers.tellAll(name, part)
  })
  const onNews = (isUrgent: boolean): void => {
    if (isUrgent) urgent ??= setImmediate(() => gathering.now())
    else gathering.soon()
  }
  const stop = (): void => {
    caps.share(undefined)
    gathering.close()
    clearImmediate(urgent)
    urgent = undefined
  }
  const heard = (news: CapNews, from: string): void => {
    // News of an unknown plane is dropped: when it goes, nothing would remove what it had open.
    if (peers.others().includes(from)) caps.heard(from, news)
  }
  peers.serve(name, heard)
  peers.serve(`${name}.all`, () => caps.allNews())
  peers.whenMoved((came, left) => {
    for (const plane of left) caps.lost(plane)
    // Pending news is sent before the caps are shared with the changed set of planes.
    gathering.now()
    const planes = peers.others().length + 1
    if (planes === 1) return stop()
    caps.share({ planes, onNews })
    // Fetched rather than sent: a plane drops news from one that it does not know yet.
    for (const plane of came) {
      peers.ask(plane, `${name}.all`, null).then(
        (news) => heard(news, plane),
        () => {}, // it is gone again
      )
    }
  })
  return stop
}

function* parts({ sources, ...all }: CapNews): Generator<CapNews, void> {
  yield { ...all, sources: sources.slice(0, MAX_SOURCES) }
  for (let at = MAX_SOURCES; at < sources.length; at += MAX_SOURCES) {
    yield { handshakes: 0, sources: sources.slice(at, at + MAX_SOURCES) }
  }
}
