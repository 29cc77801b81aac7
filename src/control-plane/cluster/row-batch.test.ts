import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type LocatedReservation, piecesOf, type RowBatch } from './row-batch.ts'

const reservation = (place: string, tunnelId = `tn_${place}`, sessionId = `ts_${place}`) => ({
  // No other field of a claim is read.
  reservation: { place, tunnelId, sessionId } as LocatedReservation,
  resolve() {},
  reject() {},
})

const noted = (ids: readonly string[]) => new Map(ids.map((id) => [id, true]))

test('a large batch is split into several pieces, in its order, and nothing is left out', () => {
  const ids = ['a', 'b', 'c', 'd', 'e']
  const batch: RowBatch = {
    sessions: noted(ids),
    tunnels: noted(ids.slice(0, 1)),
    addresses: new Set(['x', 'y', 'z']),
    reservations: [reservation('x'), reservation('w')],
  }
  const pieces = piecesOf(batch, 2)
  assert.deepEqual(
    pieces.map(({ sessions }) => [...sessions.keys()]),
    [['a', 'b'], ['c', 'd'], ['e']],
  )
  assert.deepEqual(
    pieces.flatMap(({ tunnels }) => [...tunnels]),
    [['a', true]],
  )
  assert.deepEqual(pieces.flatMap(({ addresses }) => [...addresses]).toSorted(), ['w', 'x', 'y', 'z'])
  assert.deepEqual(
    pieces.flatMap(({ reservations }) => reservations),
    batch.reservations,
  )
})

test('all that concerns one place is in one piece, however often it is claimed', () => {
  const reservations = [reservation('p', 'tn_1'), reservation('q'), reservation('p', 'tn_2'), reservation('p', 'tn_3')]
  const [first, second, ...more] = piecesOf(
    { sessions: new Map(), tunnels: new Map(), addresses: new Set(['p']), reservations },
    1,
  )
  assert.deepEqual([[...(first?.addresses ?? [])], [...(second?.addresses ?? [])], more], [['p'], ['q'], []])
  assert.deepEqual(
    first?.reservations.map(({ reservation: { tunnelId } }) => tunnelId),
    ['tn_1', 'tn_2', 'tn_3'],
  )
})

test('the session of a claim is in the piece of the claim, whatever the order', () => {
  const sessions = noted(['ts_1', 'ts_2', 'ts_q', 'ts_3', 'ts_p'])
  const pieces = piecesOf(
    { sessions, tunnels: new Map(), addresses: new Set(), reservations: [reservation('p'), reservation('q')] },
    1,
  )
  assert.deepEqual(
    pieces.map((piece) => [...piece.sessions.keys()]),
    [['ts_p', 'ts_1'], ['ts_q', 'ts_2'], ['ts_3']],
  )
})

test('an empty batch has no pieces', () => {
  assert.deepEqual(piecesOf({ sessions: new Map(), tunnels: new Map(), addresses: new Set(), reservations: [] }), [])
})
