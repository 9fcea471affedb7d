-- A shop: orders stream in through a staging table, one customer asks to be forgotten, and the night tidies up.
create table shop.orders (
  order_id bigint not null, customer string, state string, amount decimal(12,2), ordered_on date, changed_at timestamp
) using iceberg partitioned by (days(ordered_on)) tblproperties (
  'write.merge.mode'='merge-on-read', 'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read',
  'write.merge.isolation-level'='snapshot', 'write.delete.isolation-level'='snapshot',
  'write.update.isolation-level'='snapshot');
create table shop.staging (
  order_id bigint, customer string, state string, amount decimal(12,2), ordered_on date, changed_at timestamp
) using iceberg;

-- job: stream
insert into shop.staging select * from kafka.orders;

-- job: load
merge into shop.orders t using shop.staging s on t.order_id = s.order_id and t.ordered_on = s.ordered_on
  when matched and s.state = 'cancelled' then delete
  when matched and s.changed_at > t.changed_at then update set *
  when not matched and s.state <> 'cancelled' then insert *;
truncate table shop.staging;

-- job: discount
update shop.orders set amount = amount - 5.00 where amount >= 100 and ordered_on >= date '2026-11-01' and state = 'open';

-- job: privacy
delete from shop.orders where customer = 'jack';

-- job: nightly
call system.rewrite_data_files(table => 'shop.orders');
