/** For the tests here: somebody who does the same kind of work again and again while another owner attacks. */

/** Works until the attack is over, and at least `atLeast` times; returns every outcome. A refusal may be thrown too. */
export async function workDuring<T>(
  attack: Promise<unknown>,
  work: (round: number) => Promise<T>,
  { atLeast = 5 } = {},
): Promise<T[]> {
  let isOver = false
  const over = attack.finally(() => {
    isOver = true
  })
  const outcomes: T[] = []
  while (!isOver || outcomes.length < atLeast) outcomes.push(await work(outcomes.length))
  await over
  return outcomes
}
