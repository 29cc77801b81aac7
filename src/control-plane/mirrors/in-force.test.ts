import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type FollowingPlane, InForce } from './in-force.ts'

/** A plane with two followers, at these revisions. */
class Plane implements FollowingPlane {
  isFed = true
  missed: number | undefined
  readonly feeds: { position: number }[]

  constructor(...at: readonly number[]) {
    this.feeds = at.map((position) => ({ position }))
  }

  moveTo(position: number): void {
    for (const feed of this.feeds) feed.position = position
  }
}

function among(t: TestContext, planes: Iterable<Plane>) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const inForce = new InForce(() => planes)
  /** What a wait for a revision has come to by now. */
  const waiting = (revision: number) => {
    let answer: boolean | 'waits' = 'waits'
    void inForce.wait(revision).then((given) => {
      answer = given
    })
    return async () => {
      await Promise.resolve()
      await Promise.resolve()
      return answer
    }
  }
  return { inForce, waiting, later: (ms: number) => t.mock.timers.tick(ms) }
}

test('a write is in force when every follower of every plane has it', async (t) => {
  const [one, other] = [new Plane(5, 5), new Plane(5, 5)]
  const { inForce, waiting } = among(t, [one, other])
  const answer = waiting(6)
  one.moveTo(6)
  inForce.progressed()
  assert.equal(await answer(), 'waits')
  const [first, second] = other.feeds
  if (first) first.position = 7
  inForce.progressed()
  assert.equal(await answer(), 'waits')
  if (second) second.position = 6
  inForce.progressed()
  assert.equal(await answer(), true)
  assert.equal(await waiting(6)(), true, 'nobody waits for what is in force')
})

test('a plane that does not acknowledge in time is pending, and the next writes do not wait for it', async (t) => {
  const [stuck, well] = [new Plane(5), new Plane(5)]
  const { inForce, waiting, later } = among(t, [stuck, well])
  const first = waiting(6)
  well.moveTo(6)
  inForce.progressed()
  later(999)
  assert.equal(await first(), 'waits')
  later(1)
  assert.equal(await first(), false)

  const second = waiting(7)
  assert.equal(await second(), 'waits', 'the other plane is waited for')
  well.moveTo(7)
  inForce.progressed()
  assert.equal(await second(), false)

  stuck.moveTo(7)
  inForce.progressed()
  const third = waiting(8)
  for (const plane of [stuck, well]) plane.moveTo(8)
  assert.equal(await third(), 'waits')
  inForce.progressed()
  assert.equal(await third(), true, 'it acknowledges again, so it is waited for again')
})

test('a plane that starts or is gone is not waited for', async (t) => {
  const starting = new Plane(0)
  starting.isFed = false
  const planes = new Set([starting, new Plane(5)])
  const { inForce, waiting } = among(t, planes)
  const answer = waiting(6)
  assert.equal(await answer(), 'waits')
  planes.clear()
  inForce.progressed()
  assert.equal(await answer(), true)
})
