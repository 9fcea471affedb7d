-- A shop: orders arrive as a stream, are merged from staging, forgotten on request, and compacted at night.
create table orders (
  order_id bigint, customer_id bigint, status string, amount decimal(10,2), ordered_on date
) using iceberg partitioned by (days(ordered_on))
  tblproperties ('write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read',
                 'write.merge.mode'='merge-on-read', 'write.delete.isolation-level'='snapshot',
                 'write.update.isolation-level'='snapshot', 'write.merge.isolation-level'='snapshot');

-- job: checkout
insert into orders values (1001, 7, 'open', 12.50, date '2026-11-01');
-- job: changes
merge into orders t using staged_changes s on t.order_id = s.order_id
  when matched and s.op = 'D' then delete
  when matched then update set status = s.status, amount = s.amount
  when not matched and s.op <> 'D' then
    insert (order_id, customer_id, status, amount, ordered_on)
    values (s.order_id, s.customer_id, s.status, s.amount, s.ordered_on);
-- job: forget
delete from orders where customer_id = 7;
-- job: nightly
call system.rewrite_data_files('orders');
