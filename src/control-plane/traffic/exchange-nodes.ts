/** The nodes that can be asked about exchanges: this one, and all others that are online. */

import type { OtherNode } from '../../link/planes/plane-calls.ts'
import type { ExchangeAsk } from '../../model/exchange.ts'
import type { AttachedPlanes } from '../mirrors/attached-planes.ts'
import type { ExchangeNode } from './listed-exchanges.ts'
import { type AskExchanges, exchangesHere } from './node-exchanges.ts'

/** The other nodes; undefined for a node on its own. */
interface OtherExchanges {
  readonly others: readonly OtherNode[]
  exchangesAt(nodeId: string, ask: ExchangeAsk): Promise<unknown>
}

export function exchangeNodes(
  nodeId: string,
  planes: Pick<AttachedPlanes, 'askEach' | 'ready'>,
  cluster: OtherExchanges | undefined,
): ExchangeNode[] {
  // Nodes answer as `ExchangeAnswers` says.
  const here = exchangesHere(planes) as AskExchanges
  const others = cluster?.others ?? []
  return [
    { id: nodeId, ask: here },
    ...others.map((other) => ({
      id: other.nodeId,
      ask: ((ask: ExchangeAsk) => cluster?.exchangesAt(other.nodeId, ask)) as AskExchanges,
    })),
  ]
}
